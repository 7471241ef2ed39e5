/* Request key: identifies a request at both peers, by a header that it carries.
 *
 *   traceparent      VERSION-TRACE-SPAN-FLAGS[-...] of W3C Trace Context;
 *                    2, 32, 16 and 2 hexadecimal digits in lower case
 *   x-stretto-flow   the key itself, 16 such digits
 *
 * A key has 64 bits.  It is 0 if the text, which is untrusted, has
 * neither form. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t st_traceparent_key(const char* text, size_t size);
uint64_t st_flow_header_key(const char* text, size_t size);
