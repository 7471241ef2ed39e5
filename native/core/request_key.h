/* What names a request at both its ends: the headers that it carries.
 *
 *   traceparent      VERSION-TRACE-SPAN-FLAGS[-...] of W3C Trace Context;
 *                    2, 32, 16 and 2 hexadecimal digits in lower case
 *   x-stretto-flow   the key itself, 16 such digits
 *
 * A key is 64 bits, and 0 where the text is anything else: what comes from a
 * peer may be anything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t st_traceparent_key(const char* text, size_t size);
uint64_t st_flow_header_key(const char* text, size_t size);
