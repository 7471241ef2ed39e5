/* Exceptions of stretto.base.errors, set from C. The format is PyErr_Format's. */
#pragma once

/* DecodeError: what was read is damaged. */
void set_decode_error(const char* format, ...);
/* LocalProtocolError: the caller broke the rules of an object. */
void set_protocol_error(const char* format, ...);
