/* JSON text: reads values of a text in memory, without copies.
 *
 *   struct st_json value = st_json_read(&at, end);
 *   struct st_json_members in = st_json_members(value);
 *   while (st_json_next(&in, &key, &member)) ...
 *
 * Objects and arrays are spans of the text, whose members are read when they
 * are needed.  A malformed value has the kind ST_JSON_NONE.
 */
#pragma once

#include <string.h>

#include "string_pool.h"

enum st_json_kind {
  ST_JSON_NONE,
  ST_JSON_NULL,
  ST_JSON_BOOL,
  ST_JSON_INT,
  ST_JSON_REAL,
  ST_JSON_TEXT,
  ST_JSON_OBJECT,
  ST_JSON_ARRAY,
};

struct st_json {
  enum st_json_kind kind;
  bool has_escapes; /* Whether a text has escapes. */
  const char* data; /* The characters between quotes or brackets. */
  size_t size;
  union {
    int64_t i;
    double f;
  };
};

struct st_json_members {
  const char *at, *end;
  bool has_keys;
};

static inline bool st_json_is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
/* Reads the value at *at, and moves *at to its end. */
struct st_json st_json_read(const char** at, const char* end);
/* Returns the members of an object, or the elements of an array.  Values of
 * other kinds have none. */
struct st_json_members st_json_members(struct st_json container);
/* Reads the next member or element.  The key of an element is ST_JSON_NONE.
 * Returns false at the end, or if the text is malformed. */
bool st_json_next(struct st_json_members* m, struct st_json* key,
                  struct st_json* value);
/* Returns whether a text is equal to `expected`; escapes are not replaced. */
static inline bool st_json_is(struct st_json text, const char* expected) {
  return text.kind == ST_JSON_TEXT && text.size == strlen(expected) &&
         memcmp(text.data, expected, text.size) == 0;
}
/* Adds a text to the pool, with its escapes replaced. */
st_string st_json_string(struct st_string_pool* p, struct st_json text);
/* Returns the number that a text contains; ST_JSON_NONE if it contains anything
 * else. */
struct st_json st_json_number(struct st_json text);
