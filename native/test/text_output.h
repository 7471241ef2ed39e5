/* Formats the message of a converter so that tests can compare it: "3{1:0 2:5}
 * 4:17" is field 3 with a nested message, and field 4 with 17. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "core/decoder.h"
#include "core/message.h"

static uint8_t output[1 << 20];
static struct st_stream_writer output_stream;
static struct st_message output_root;

static inline struct st_message* output_begin(void) {
  st_stream_init_fixed(&output_stream, output, sizeof output);
  st_message_init_root(&output_root, &output_stream);
  return &output_root;
}

/* Appends the formatted fields to `text`.  `nested` has a bit for each field of
 * the outermost message that is a message. */
static inline char* form(char* text, const uint8_t* data, size_t size,
                         uint32_t nested) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  for (bool first = true; st_decoder_next(&d, &f); first = false) {
    text += sprintf(text, first ? "%u" : " %u", f.number);
    if (f.wire_type == ST_WIRE_VARINT)
      text += sprintf(text, ":%llu", (unsigned long long)f.value);
    else if (f.number < 32 && nested >> f.number & 1)
      text = form(stpcpy(text, "{"), f.data, f.size, 0), *text++ = '}';
    else
      text += sprintf(text, ":'%.*s'", (int)f.size, (const char*)f.data);
  }
  *text = 0;
  CHECK_EQ(st_decoder_left(&d), 0);
  return text;
}

/* Ends the message, and checks that its formatted text is `expected`. */
static inline void output_is(uint32_t nested, const char* expected) {
  static char text[1 << 16];
  size_t size = st_message_finalize(&output_root);
  CHECK_EQ(output_stream.overflowed, 0);
  form(text, output, size, nested);
  if (strcmp(text, expected) != 0)
    fprintf(stderr, "got      %s\nexpected %s\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
}
