/* Raises the exceptions of stretto.base.errors from C. The format strings are
 * those of PyErr_Format. */
#pragma once

/* Raises the class of this name. */
void st_set_error(const char* name, const char* format, ...);

/* For damaged encoded input. */
#define set_decode_error(...) st_set_error("DecodeError", __VA_ARGS__)
/* For an object that its caller uses wrongly. */
#define set_protocol_error(...) st_set_error("LocalProtocolError", __VA_ARGS__)
