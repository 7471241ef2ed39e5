/* Raises the exceptions of stretto.base.errors from C. The format strings are
 * those of PyErr_Format. */
#pragma once

/* Raises DecodeError, the exception for damaged encoded input. */
void set_decode_error(const char* format, ...);
/* Raises LocalProtocolError, the exception for an object that its caller uses
 * wrongly. */
void set_protocol_error(const char* format, ...);
