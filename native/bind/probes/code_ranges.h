/* Code of another process, as Python gives it: a list of (start, end, header). */
#pragma once

#include "bind/common/python.h"
#include "probes/code_map.h"

/* Fills `ranges`, which has room for ST_MAP_MAX_RANGES.  Returns their number, or
 * -1 with an exception set. */
int st_bind_code_ranges(PyObject* list, struct st_code_range* ranges);
