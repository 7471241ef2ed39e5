/* Arguments of events as DebugAnnotation values.
 *
 *   exact int of 64 bits, float, bool, None, str   plain: encoded in the packet
 *   anything else                                  converted before the packet
 *                                                  opens, because conversions
 *                                                  may run Python
 *
 * DebugAnnotation: 2 bool, 4 int64, 5 double, 6 string, 10 name, 11
 * dict_entries, 12 array_values.
 *
 * An int that exceeds int64 is written as a string of its decimal digits
 * (hexadecimal if Python refuses decimal): readers store a uint64 as int64 and
 * would show addresses and hashes as negative numbers.  Numbers of other
 * libraries are converted by __index__ or __float__. Other objects, and bytes,
 * are written as their repr.  A value longer than MAX_ARGUMENT_BYTES is
 * truncated and marked.  No function raises: a failed conversion is counted,
 * and its value is written as "<ExceptionName in repr>".
 */
#pragma once

#include "bind/common/bytes_builder.h"

enum { MAX_ARGUMENT_BYTES = 4096 };

struct converted_argument {
  /* The position of a converted argument in the scratch.  If its size is 0, the
   * argument is plain. */
  size_t offset, size;
};

/* Returns whether an argument is plain, so that append_plain_value() can encode
 * it. */
bool argument_is_plain(PyObject* value);

/* Appends the encoding of an argument that is not plain to the scratch, and
 * stores its position in *out.  May run Python code that records other events;
 * these use the scratch after its current end.  Never raises. */
void convert_argument(struct bytes_builder* scratch, PyObject* value,
                      struct converted_argument* out);

/* Appends the encoding of a plain argument.  Runs no Python code. */
void append_plain_value(struct bytes_builder* out, PyObject* value);
