/* The methods of Category that record events.
 *
 * Each returns at once if no session records the category.  Otherwise it tries
 * the fast paths (emit_fast.h, emit_plain.h), and then parses all arguments and
 * calls st_emit.  None raises, except under -X dev (misuse.h).
 */
#pragma once

#include "bind/common/python.h"

PyObject* category_instant(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* kwnames);
PyObject* category_log_message(PyObject* self, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames);
PyObject* category_slice(PyObject* self, PyObject* const* args,
                         Py_ssize_t count, PyObject* kwnames);
PyObject* category_counter(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* kwnames);
PyObject* category_template(PyObject* self, PyObject* const* args,
                            Py_ssize_t count, PyObject* kwnames);
PyObject* category_begin(PyObject* self, PyObject* const* args,
                         Py_ssize_t count, PyObject* kwnames);
PyObject* category_end(PyObject* self, PyObject* const* args, Py_ssize_t count,
                       PyObject* kwnames);
PyObject* category_slice_for_code(PyObject* self, PyObject* code);

/* The methods above with an empty body: the benchmarks compare disabled events
 * with them. */
PyObject* category_empty(PyObject* self, PyObject* const* args,
                         Py_ssize_t count, PyObject* kwnames);
PyObject* category_empty_slice(PyObject* self, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames);
