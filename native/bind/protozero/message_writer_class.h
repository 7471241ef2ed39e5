/* make_writer_class(): makes the generated subclasses of MessageWriter.
 *
 * A class made in Python has instances that the garbage collector tracks and
 * that may be subclassed.  Writers need neither: the classes are closed after
 * they are made, and their instances share the free list of message_writer.h.
 */
#ifndef STRETTO_BIND_PROTOZERO_MESSAGE_WRITER_CLASS_H_
#define STRETTO_BIND_PROTOZERO_MESSAGE_WRITER_CLASS_H_

#include "bind/common/python.h"

/* Adds the function and MAX_WRITER_METHODS to the module.  -1: an exception is set. */
int st_bind_add_message_writer_class(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_MESSAGE_WRITER_CLASS_H_ */
