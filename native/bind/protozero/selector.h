/* The Python type Selector: decodes chosen fields of a message into one tuple.
 *
 * The paths are compiled into a tree of field numbers once:
 *
 *   timestamp, track_event.type, track_event.name_iid
 *
 *   8 -> column 0
 *   11 -> 9  -> column 1
 *         10 -> column 2
 *
 * As in all decoders of Stretto: if a field occurs more than once, its last
 * occurrence counts; this also holds for the messages that contain it.  A field
 * of another wire type counts as missing.  Decoding stops at the first
 * malformed byte.
 */
#pragma once

#include "bind/common/python.h"

bool is_selector(PyObject* object);
/* Returns a new tuple of the selector's fields in a message of `size` bytes.
 * Returns NULL with an exception set on failure. */
PyObject* selector_row(PyObject* selector, const uint8_t* data, size_t size);
