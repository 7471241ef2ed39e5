#include "json_text.h"

#include <stdlib.h>
#include <string.h>

static void skip_space(const char** at, const char* end) {
  while (*at < end && st_json_is_space(**at))
    ++*at;
}

/* Returns whether one of 8 characters is a quote or a backslash. */
static bool has_end(const char* at) {
  const uint64_t kOnes = 0x0101010101010101u;
  uint64_t v;
  memcpy(&v, at, sizeof v);
  uint64_t quote = v ^ kOnes * '"', backslash = v ^ kOnes * '\\';
  uint64_t zeros =
      ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash);
  return zeros & kOnes << 7;
}

/* Returns the position of a text's closing quote; NULL if it is missing.  `at`
 * is the opening quote.  Sets *has_escapes if there are escapes. */
static const char* end_of_text(const char* at, const char* end,
                               bool* has_escapes) {
  for (at++; at < end; at++) {
    while (end - at > 8 && !has_end(at))
      at += 8;
    if (*at == '"')
      return at;
    if (*at == '\\') {
      *has_escapes = true;
      at++;
    }
  }
  return NULL;
}

static struct st_json read_text(const char** at, const char* end) {
  struct st_json value = {.kind = ST_JSON_TEXT, .data = *at + 1};
  const char* last = end_of_text(*at, end, &value.has_escapes);
  if (!last)
    return (struct st_json){0};
  value.size = (size_t)(last - value.data);
  *at = last + 1;
  return value;
}

/* Reads an object or array up to the bracket that ends it. */
static struct st_json read_container(const char** at, const char* end) {
  struct st_json value = {.kind = **at == '{' ? ST_JSON_OBJECT : ST_JSON_ARRAY,
                          .data = *at + 1};
  size_t depth = 0;
  bool ignored;
  for (const char* p = *at; p < end; p++) {
    if (*p == '"') {
      p = end_of_text(p, end, &ignored);
      if (!p)
        break;
    } else if (*p == '{' || *p == '[') {
      depth++;
    } else if ((*p == '}' || *p == ']') && --depth == 0) {
      value.size = (size_t)(p - value.data);
      *at = p + 1;
      return value;
    }
  }
  return (struct st_json){0};
}

static bool is_number_character(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
         c == 'e' || c == 'E';
}

/* Converts digits with a decimal point.  Returns false if the result may not be
 * exact: a quotient of two doubles that are exact is rounded correctly. */
static bool read_decimal(const char* text, size_t size, double* value) {
  static const double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5,
                                   1e6, 1e7, 1e8, 1e9, 1e10};
  bool is_negative = size && *text == '-';
  uint64_t digits = 0;
  size_t point = size, first = is_negative;
  if (size - first < 2 || size - first > 16)
    return false;
  for (size_t i = first; i < size; i++) {
    if (text[i] == '.' && point == size)
      point = i;
    else if (text[i] < '0' || text[i] > '9')
      return false;
    else
      digits = digits * 10 + (uint64_t)(text[i] - '0');
  }
  size_t decimals = point < size ? size - point - 1 : 0;
  if (decimals > 10)
    return false;
  *value = (double)digits / kPowers[decimals];
  *value = is_negative ? -*value : *value;
  return true;
}

/* Converts a number that is not an integer, or too large for 64 bits. */
static struct st_json read_real(const char* text, size_t size) {
  char copy[64], *end;
  double decimal;
  if (read_decimal(text, size, &decimal))
    return (struct st_json){.kind = ST_JSON_REAL, .f = decimal};
  if (size >= sizeof copy)
    return (struct st_json){0};
  memcpy(copy, text, size);
  copy[size] = 0;
  double f = strtod(copy, &end);
  return end == copy + size ? (struct st_json){.kind = ST_JSON_REAL, .f = f}
                            : (struct st_json){0};
}

static struct st_json read_number(const char** at, const char* end) {
  const char* start = *at;
  bool is_negative = start < end && *start == '-';
  uint64_t number = 0;
  bool is_integer = true;
  const char* p = start + is_negative;
  for (; p < end && is_number_character(*p); p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    is_integer &= digit <= 9 && number <= (INT64_MAX - digit) / 10;
    number = is_integer ? number * 10 + digit : number;
  }
  size_t size = (size_t)(p - start);
  if (size == is_negative)
    return (struct st_json){0};
  *at = p;
  if (!is_integer)
    return read_real(start, size);
  return (struct st_json){
      .kind = ST_JSON_INT,
      .i = is_negative ? -(int64_t)number : (int64_t)number};
}

static struct st_json read_literal(const char** at, const char* end) {
  static const struct {
    const char* text;
    struct st_json value;
  } kLiterals[] = {{"true", {.kind = ST_JSON_BOOL, .i = 1}},
                   {"false", {.kind = ST_JSON_BOOL, .i = 0}},
                   {"null", {.kind = ST_JSON_NULL}}};
  for (size_t i = 0; i < 3; i++) {
    size_t size = strlen(kLiterals[i].text);
    if ((size_t)(end - *at) >= size &&
        memcmp(*at, kLiterals[i].text, size) == 0) {
      *at += size;
      return kLiterals[i].value;
    }
  }
  return (struct st_json){0};
}

struct st_json st_json_read(const char** at, const char* end) {
  skip_space(at, end);
  if (*at == end)
    return (struct st_json){0};
  switch (**at) {
    case '"':
      return read_text(at, end);
    case '{':
    case '[':
      return read_container(at, end);
    case 't':
    case 'f':
    case 'n':
      return read_literal(at, end);
    default:
      return read_number(at, end);
  }
}

struct st_json_members st_json_members(struct st_json container) {
  bool has_keys = container.kind == ST_JSON_OBJECT;
  if (!has_keys && container.kind != ST_JSON_ARRAY)
    return (struct st_json_members){0};
  return (struct st_json_members){container.data,
                                  container.data + container.size, has_keys};
}

bool st_json_next(struct st_json_members* m, struct st_json* key,
                  struct st_json* value) {
  *key = (struct st_json){0};
  skip_space(&m->at, m->end);
  if (m->at < m->end && *m->at == ',')
    m->at++;
  if (m->has_keys) {
    *key = st_json_read(&m->at, m->end);
    skip_space(&m->at, m->end);
    if (key->kind != ST_JSON_TEXT || m->at == m->end || *m->at != ':')
      return false;
    m->at++;
  }
  *value = st_json_read(&m->at, m->end);
  return value->kind != ST_JSON_NONE;
}

/* Returns the value of four hexadecimal digits; -1 if they are missing. */
static int32_t read_hex(const char* p, const char* end) {
  int32_t value = 0;
  if (end - p < 4)
    return -1;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0)
      return -1;
    value = value << 4 | digit;
  }
  return value;
}

/* Writes a character as UTF-8, and returns the end.  Half of a surrogate pair
 * becomes invalid bytes, which the string pool replaces. */
static char* put_character(char* out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
    return out;
  }
  uint32_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  *out++ = (char)(kFirst[more] | c >> 6 * more);
  while (more-- > 0)
    *out++ = (char)(0x80 | (c >> 6 * more & 0x3F));
  return out;
}

/* Writes the character of an escape sequence, and returns the end.  *at is the
 * character after the backslash; it is moved to the last one of the sequence.
 */
static char* put_escape(char* out, const char** at, const char* end) {
  static const char kLetters[] = "bfnrt", kControls[] = "\b\f\n\r\t";
  char c = **at;
  const char* letter = strchr(kLetters, c);
  if (c && letter) {
    *out++ = kControls[letter - kLetters];
    return out;
  }
  int32_t unit = c == 'u' ? read_hex(*at + 1, end) : -1;
  if (unit < 0) {
    *out++ = c;
    return out;
  }
  *at += 4;
  uint32_t character = (uint32_t)unit;
  if (unit >= 0xD800 && unit < 0xDC00 && end - *at >= 7 && (*at)[1] == '\\' &&
      (*at)[2] == 'u') {
    int32_t low = read_hex(*at + 3, end);
    if (low >= 0xDC00 && low < 0xE000) {
      character = 0x10000 + ((uint32_t)(unit - 0xD800) << 10) +
                  (uint32_t)(low - 0xDC00);
      *at += 6;
    }
  }
  return put_character(out, character);
}

st_string st_json_string(struct st_string_pool* p, struct st_json text) {
  if (!text.has_escapes)
    return st_string_add(p, text.data, text.size);
  char* copy = malloc(text.size + 1);
  char* out = copy;
  if (!copy)
    st_memory_fail();
  const char* end = text.data + text.size;
  for (const char* at = text.data; at < end; at++) {
    if (*at == '\\' && at + 1 < end) {
      at++;
      out = put_escape(out, &at, end);
    } else {
      *out++ = *at;
    }
  }
  st_string id = st_string_add(p, copy, (size_t)(out - copy));
  free(copy);
  return id;
}

struct st_json st_json_number(struct st_json text) {
  const char* at = text.data;
  struct st_json number = read_number(&at, text.data + text.size);
  return at == text.data + text.size ? number : (struct st_json){0};
}
