#include "uncached_copy.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

enum { LINE = 64, PIECES = 4 };

/* Copies a line to an aligned address. */
static void copy_line(__m128i* to, const __m128i* from) {
  __m128i pieces[PIECES];
  for (int i = 0; i < PIECES; i++)
    pieces[i] = _mm_loadu_si128(from + i);
  for (int i = 0; i < PIECES; i++)
    _mm_stream_si128(to + i, pieces[i]);
}

void st_copy_uncached(void* to, const void* from, size_t size) {
  uint8_t* p = to;
  const uint8_t* text = from;
  size_t before = -(uintptr_t)p % LINE;
  if (size < before + LINE) {
    memcpy(p, text, size);
    return;
  }
  memcpy(p, text, before);
  for (p += before, text += before, size -= before; size >= LINE;
       p += LINE, text += LINE, size -= LINE)
    copy_line((__m128i*)(void*)p, (const __m128i*)(const void*)text);
  _mm_sfence();
  memcpy(p, text, size);
}

#else

void st_copy_uncached(void* to, const void* from, size_t size) {
  memcpy(to, from, size);
}

#endif
