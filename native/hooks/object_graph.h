/* Object graph: the objects of this process, their sizes and references.
 *
 * A copy of the process (probes/process_copy.h) walks the objects, while the
 * program goes on, and writes them into a pipe (probes/graph_output.h):
 *
 *   roots    modules; calls of all threads; later, what only C code holds
 *     └─> objects, by tp_traverse, in the order in which they are found
 *           └─> ... names of types and fields at the end
 *
 *   module shop ──> dict ──orders──> list ──> shop.Order ──> str
 *   frame serve ──request──> shop.Request
 *
 * A module has a type of its own, and so has a call, whose variables are
 * references: so a reader sees by name which module, or which call, holds the
 * memory.  References of modules' dicts and of other dicts with str keys have
 * names, too.
 *
 * What only C code holds: an object that the walk has not found, and that has
 * more references than the objects found have to it, is a root; without, it is
 * garbage that the collector has not yet freed.
 *
 * The walk writes to no object, so the copy shares the program's pages.  It runs
 * no Python code.
 *
 * Limits: `max_objects` objects, 32,768 names, and a time: after it, objects are
 * written without their references.  References to what found no room go to an
 * object of the type `[objects left out]`.  An object with many references has
 * parts, of the type `[more references]`.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

struct st_object_graph_options {
  int fd;               /* The pipe. */
  uint32_t max_objects; /* At most 2**24. */
  uint64_t time_ns;     /* For the walk. */
};

/* Starts the copy.  Returns its pid; -1 with an exception set on failure. */
int st_object_graph_start(const struct st_object_graph_options* options);

/* Adds the function object_graph() to the module.  Returns -1 with an exception
 * set. */
int st_add_object_graph(PyObject* module);
