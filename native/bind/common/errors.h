/* Raises the exceptions of stretto.base.errors from C. The format strings are
 * those of PyErr_Format. */
#pragma once

/* Raises the exception class `name` of stretto.base.errors. */
void st_set_error(const char* name, const char* format, ...);

/* For damaged encoded input. */
#define set_decode_error(...) st_set_error("DecodeError", __VA_ARGS__)
/* For a program that uses an object wrongly. */
#define set_protocol_error(...) st_set_error("LocalProtocolError", __VA_ARGS__)
