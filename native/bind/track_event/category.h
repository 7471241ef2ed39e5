/* The Python type Category: events are switched on and off by category.
 *
 * One object per name, which is never freed: making a category again returns
 * the same object.  The client is called for each new category and sets the
 * bits of the slots that record it.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_CATEGORY_H_
#define STRETTO_BIND_TRACK_EVENT_CATEGORY_H_

#include "bind/common/python.h"

extern PyTypeObject* st_category_type;

/* Adds the type and its functions to the module.  -1: an exception is set. */
int st_bind_add_category(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_CATEGORY_H_ */
