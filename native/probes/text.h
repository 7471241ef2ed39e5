/* Text of the kernel's files: lines, words and numbers in bytes that have no
 * NUL at their end.
 *
 *   struct st_text line, word;
 *   uint64_t value;
 *   while (st_text_line(&text, &line)) {
 *     if (st_text_word(&line, &word) && st_text_u64(&line, &value)) ...
 *   }
 *
 * Each function removes the part that it returns from the front of its text.
 * All texts point into the same bytes; nothing is copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct st_text {
  const char* at;
  const char* end;
};

static inline struct st_text st_text_of(const void* data, size_t size) {
  const char* at = size ? data : "";
  return (struct st_text){at, at + size};
}

static inline size_t st_text_size(struct st_text text) {
  return (size_t)(text.end - text.at);
}

static inline bool st_text_is(struct st_text text, const char* other) {
  size_t size = strlen(other);
  return st_text_size(text) == size && memcmp(text.at, other, size) == 0;
}

/* Removes a prefix.  Returns false, and removes nothing, if the text does not
 * begin with it. */
static inline bool st_text_skip(struct st_text* text, const char* prefix) {
  size_t size = strlen(prefix);
  if (st_text_size(*text) < size || memcmp(text->at, prefix, size) != 0)
    return false;
  text->at += size;
  return true;
}

/* Removes the next line, and stores it without its newline.  Returns false at
 * the end of the text. */
static inline bool st_text_line(struct st_text* text, struct st_text* line) {
  if (text->at == text->end)
    return false;
  const char* end = memchr(text->at, '\n', st_text_size(*text));
  *line = (struct st_text){text->at, end ? end : text->end};
  text->at = end ? end + 1 : text->end;
  return true;
}

static inline bool st_text_is_blank(char c) {
  return c == ' ' || c == '\t';
}

/* Removes the next word: bytes up to a blank.  Returns false if there is
 * none. */
static inline bool st_text_word(struct st_text* text, struct st_text* word) {
  const char* p = text->at;
  while (p < text->end && st_text_is_blank(*p))
    p++;
  word->at = p;
  while (p < text->end && !st_text_is_blank(*p))
    p++;
  word->end = text->at = p;
  return word->at < p;
}

/* Removes the next word if it is a decimal number.  A number beyond the range
 * becomes UINT64_MAX.  Returns false at any other word, or at the end. */
static inline bool st_text_u64(struct st_text* text, uint64_t* value) {
  struct st_text rest = *text, word;
  uint64_t v = 0;
  bool overflow = false;
  if (!st_text_word(&rest, &word))
    return false;
  for (const char* p = word.at; p < word.end; p++) {
    uint64_t digit = (uint64_t)*p - '0';
    if (digit > 9)
      return false;
    overflow |= __builtin_mul_overflow(v, 10, &v);
    overflow |= __builtin_add_overflow(v, digit, &v);
  }
  *value = overflow ? UINT64_MAX : v;
  *text = rest;
  return true;
}

/* Returns value * scale; UINT64_MAX if the product is too large. */
static inline uint64_t st_scaled(uint64_t value, uint64_t scale) {
  return __builtin_mul_overflow(value, scale, &value) ? UINT64_MAX : value;
}
