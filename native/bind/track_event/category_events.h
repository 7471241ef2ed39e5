/* The methods of Category that record events.
 *
 * Each returns at once if no session records the category.  Otherwise it tries
 * the fast paths (emit_fast.h, emit_plain.h), and then parses all arguments and
 * calls st_emit.  None raises, except under -X dev (misuse.h).
 */
#pragma once

#include "bind/common/python.h"

st_bind_function category_instant, category_log_message, category_slice,
    category_counter, category_begin, category_end;
PyObject* category_slice_for_code(PyObject* self, PyObject* code);

/* The methods above with an empty body: the benchmarks compare disabled events
 * with them. */
st_bind_function category_empty, category_empty_slice;
