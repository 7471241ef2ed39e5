/* Raises the exceptions of stretto.base.errors from C. The format strings are
 * those of PyErr_Format. */
#pragma once

/* Sets DecodeError: the encoded input is damaged. */
void set_decode_error(const char* format, ...);
/* Sets LocalProtocolError: the caller broke the usage rules of an object. */
void set_protocol_error(const char* format, ...);
