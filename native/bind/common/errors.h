/* Raises the exceptions of stretto.base.errors from C. The format strings are
 * those of PyErr_Format. */
#pragma once

/* Sets DecodeError, the exception for damaged encoded input. */
void set_decode_error(const char* format, ...);
/* Sets LocalProtocolError, the exception for wrong use of an object by the
 * caller. */
void set_protocol_error(const char* format, ...);
