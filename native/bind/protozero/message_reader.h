/* merge_known_fields(): fields of an encoded message become values in the dict of
 * a stretto.protozero.message.Message.
 *
 * The rules are those of stretto.protozero.message, which calls this first and
 * handles the field at which it stops: one that the plan does not list, one
 * whose value has to be merged, or a malformed one.
 *
 * A plan is a dict by tag (number << 3 | wire type), made by Layout.read_plan;
 * the items of its entries are listed in the source.
 *
 * Threads: used with the GIL.  A call handles a bounded number of fields, so
 * that other threads may run in between.
 */
#ifndef STRETTO_BIND_PROTOZERO_MESSAGE_READER_H_
#define STRETTO_BIND_PROTOZERO_MESSAGE_READER_H_

#include "bind/common/python.h"

/* Adds the function to the module.  -1: an exception is set. */
int st_bind_add_message_reader(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_MESSAGE_READER_H_ */
