/* File descriptors of the kernel that a selector waits on: inotify watches of
 * opened files, and timers.
 */
#ifndef STRETTO_BIND_COMMON_DESCRIPTORS_H_
#define STRETTO_BIND_COMMON_DESCRIPTORS_H_

#include "bind/common/python.h"

/* Adds the functions to the module.  -1: an exception is set. */
int st_bind_add_descriptors(PyObject* module);

#endif /* STRETTO_BIND_COMMON_DESCRIPTORS_H_ */
