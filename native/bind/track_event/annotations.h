/* Arguments of events as DebugAnnotation values.
 *
 *   exact int of 64 bits, float, bool, None, str   plain: encoded late
 *   anything else                                  converted before the packet
 *                                                  opens: it may run Python
 *
 * DebugAnnotation: 2 bool, 4 int64, 5 double, 6 string,
 * 10 name, 11 dict_entries, 12 array_values.
 *
 * An int that doesn't fit int64 is written as its decimal (or, if Python refuses
 * that, hexadecimal) digits: readers keep an uint64 as int64, and would show
 * addresses and hashes as negative numbers.  bytes appear as their repr, an
 * object as its repr, with numbers of other libraries by __index__ and
 * __float__.  A value above MAX_ARGUMENT_BYTES is cut and says so.  Nothing
 * raises: what fails is counted and shown as "<ExceptionName in repr>".
 */
#pragma once

#include "bind/common/bytes_builder.h"

struct converted_argument {
  size_t offset, size; /* value fields in the scratch; size 0: not converted */
};

/* Whether the value is encoded late, by append_plain_value. */
bool argument_is_plain(PyObject* value);

/* Appends the encoding of a value that is not plain to the scratch; *out says
 * where.  May run Python code, and with it events that use the scratch above
 * what is there.  Never raises. */
void convert_argument(struct bytes_builder* scratch, PyObject* value,
                      struct converted_argument* out);

/* Appends the value fields of a plain value.  Runs no Python code. */
void append_plain_value(struct bytes_builder* out, PyObject* value);
