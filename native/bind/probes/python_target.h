/* Python target: converts Python arguments that describe another process. */
#pragma once

#include "bind/common/python.h"
#include "probes/python_target.h"

/* Fills the offsets of a layout from a dict: each has the name of its member in
 * st_stack_layout or st_python_layout.  Returns false with KeyError, ValueError
 * or TypeError set. */
bool st_bind_layout(PyObject* dict, struct st_python_layout* layout);

/* Fills the addresses of the target's interpreters from a sequence of ints, up
 * to ST_TARGET_MAX_HEADS.  Returns false with an exception set on failure. */
bool st_bind_heads(PyObject* heads, struct st_python_target* target);
