/* Debug annotations become arguments: dictionaries and arrays are flattened.
 *
 *   {name: "a", dict: {b: 1, c: [true, "x"]}}
 *
 *   debug.a.b      flat_key debug.a.b       1
 *   debug.a.c[0]   flat_key debug.a.c       true
 *   debug.a.c[1]   flat_key debug.a.c       x
 *
 * Limits: values nested deeper than MAX_DEPTH are ignored. */
#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"

#define FIELD(name) ST_FIELD_DEBUG_ANNOTATION_##name
#define NESTED(name) ST_FIELD_DEBUG_ANNOTATION_NESTED_VALUE_##name

enum { MAX_DEPTH = 64 };

/* The key of an argument, while it is built; both keys are in one buffer. */
struct path {
  struct st_importer* m;
  struct st_arg_list* args;
  uint32_t generation, depth;
  ST_ARRAY(char) key;
  ST_ARRAY(char) flat;
};

#define APPEND(a, text, n)                    \
  do {                                        \
    ST_RESERVE(a, n);                         \
    if (n)                                    \
      memcpy((a)->data + (a)->size, text, n); \
    (a)->size += (uint32_t)(n);               \
  } while (0)

/* Appends a name, in which `.`, `[` and `]` become `_`. */
static void append_name(struct path* p, const char* name, size_t size) {
  uint32_t start = p->key.size;
  if (start)
    APPEND(&p->key, ".", 1);
  APPEND(&p->key, name, size);
  for (uint32_t i = start + (start ? 1 : 0); i < p->key.size; i++) {
    char* c = &p->key.data[i];
    if (*c == '.' || *c == '[' || *c == ']')
      *c = '_';
  }
  if (p->flat.size)
    APPEND(&p->flat, ".", 1);
  APPEND(&p->flat, p->key.data + start + (start ? 1 : 0), size);
}

static void append_index(struct path* p, uint32_t index) {
  char digits[16];
  size_t n = 0;
  do
    digits[n++] = (char)('0' + index % 10);
  while (index /= 10);
  APPEND(&p->key, "[", 1);
  while (n) {
    n--;
    APPEND(&p->key, &digits[n], 1);
  }
  APPEND(&p->key, "]", 1);
}

static void add(struct path* p, struct st_arg arg) {
  struct st_string_pool* pool = &p->m->storage.strings;
  arg.key = st_string_add(pool, p->key.data, p->key.size);
  arg.flat_key = p->key.size == p->flat.size
                     ? arg.key
                     : st_string_add(pool, p->flat.data, p->flat.size);
  st_arg_list_add(p->args, arg);
}

static void add_int(struct path* p, enum st_arg_type type, int64_t value) {
  add(p, (struct st_arg){.type = type, .i = value});
}

static void add_text(struct path* p, const uint8_t* data, size_t size) {
  st_string text = st_string_add(&p->m->storage.strings, data, size);
  add(p, (struct st_arg){.type = ST_ARG_STRING, .text = text});
}

static void add_real(struct path* p, uint64_t bits) {
  struct st_arg arg = {.type = ST_ARG_REAL};
  memcpy(&arg.f, &bits, sizeof arg.f);
  add(p, arg);
}

static bool parse_value(struct path* p, struct st_field annotation);

static bool parse_nested(struct path* p, struct st_field nested);

/* Calls parse() for an element of an array.  Returns the next index. */
static uint32_t parse_element(struct path* p, struct st_field element,
                              uint32_t index,
                              bool (*parse)(struct path*, struct st_field)) {
  uint32_t size = p->key.size;
  append_index(p, index);
  bool added = parse(p, element);
  p->key.size = size;
  return index + added;
}

static bool append_annotation_name(struct path* p, struct st_field annotation) {
  struct st_decoder d;
  struct st_field f, name = {0};
  uint64_t iid = 0;
  st_decoder_init(&d, annotation.data, annotation.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FIELD(NAME_IID))
      iid = f.value;
    else if (f.number == FIELD(NAME) && f.data)
      name = f;
  }
  size_t size = name.size;
  const char* text = (const char*)name.data;
  if (iid) {
    st_string id =
        st_interned_text(&p->m->sequences, p->generation,
                         ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_NAMES, iid);
    text = id ? st_string_text(&p->m->storage.strings, id, &size) : NULL;
  }
  if (text)
    append_name(p, text, size);
  else
    p->m->counts.parser_errors++;
  return text != NULL;
}

/* Parses an annotation with a name, below the current key. */
static bool parse_named(struct path* p, struct st_field annotation) {
  uint32_t key = p->key.size, flat = p->flat.size;
  bool added =
      append_annotation_name(p, annotation) && parse_value(p, annotation);
  p->key.size = key;
  p->flat.size = flat;
  return added;
}

static bool parse_scalar(struct path* p, struct st_field f) {
  switch (f.number) {
    case FIELD(BOOL_VALUE):
      add_int(p, ST_ARG_BOOL, f.value != 0);
      return true;
    case FIELD(UINT_VALUE):
      add_int(p, ST_ARG_UINT, (int64_t)f.value);
      return true;
    case FIELD(INT_VALUE):
      add_int(p, ST_ARG_INT, (int64_t)f.value);
      return true;
    case FIELD(POINTER_VALUE):
      add_int(p, ST_ARG_POINTER, (int64_t)f.value);
      return true;
    case FIELD(DOUBLE_VALUE):
      add_real(p, f.value);
      return true;
    case FIELD(STRING_VALUE):
      if (f.data)
        add_text(p, f.data, f.size);
      return f.data != NULL;
    case FIELD(STRING_VALUE_IID): {
      st_string text = st_interned_text(
          &p->m->sequences, p->generation,
          ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, f.value);
      if (text)
        add(p, (struct st_arg){.type = ST_ARG_STRING, .text = text});
      return text != 0;
    }
    default:
      return false;
  }
}

static bool parse_value(struct path* p, struct st_field annotation) {
  struct st_decoder d;
  struct st_field f;
  bool added = false;
  uint32_t index = 0;
  if (p->depth == MAX_DEPTH)
    return false;
  p->depth++;
  st_decoder_init(&d, annotation.data, annotation.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FIELD(DICT_ENTRIES) && f.data) {
      added |= parse_named(p, f);
    } else if (f.number == FIELD(ARRAY_VALUES) && f.data) {
      index = parse_element(p, f, index, parse_value);
      added |= index > 0;
    } else if (f.number == FIELD(NESTED_VALUE) && f.data) {
      added |= parse_nested(p, f);
    } else if (f.number == FIELD(LEGACY_JSON_VALUE) ||
               f.number == FIELD(PROTO_VALUE)) {
      p->m->counts.unread_fields++;
    } else {
      added |= parse_scalar(p, f);
    }
  }
  p->depth--;
  return added;
}

/* The old form of dictionaries: keys and values are two lists. */
static bool parse_dict(struct path* p, struct st_field nested) {
  struct st_decoder keys, values;
  struct st_field k, v;
  bool added = false;
  st_decoder_init(&keys, nested.data, nested.size);
  st_decoder_init(&values, nested.data, nested.size);
  while (st_decoder_next(&keys, &k)) {
    if (k.number != NESTED(DICT_KEYS) || !k.data)
      continue;
    bool found = false;
    while (!found && st_decoder_next(&values, &v))
      found = v.number == NESTED(DICT_VALUES) && v.data;
    if (!found)
      break;
    uint32_t key = p->key.size, flat = p->flat.size;
    append_name(p, (const char*)k.data, k.size);
    added |= parse_nested(p, v);
    p->key.size = key;
    p->flat.size = flat;
  }
  return added;
}

/* Parses a scalar of a NestedValue.  The types are those of an annotation's
 * scalars, but the field numbers differ. */
static bool parse_nested_scalar(struct path* p, struct st_field f) {
  static const uint32_t kFields[][2] = {
      {NESTED(INT_VALUE), FIELD(INT_VALUE)},
      {NESTED(DOUBLE_VALUE), FIELD(DOUBLE_VALUE)},
      {NESTED(BOOL_VALUE), FIELD(BOOL_VALUE)},
      {NESTED(STRING_VALUE), FIELD(STRING_VALUE)}};
  for (uint32_t i = 0; i < sizeof kFields / sizeof *kFields; i++) {
    if (f.number != kFields[i][0])
      continue;
    f.number = kFields[i][1];
    return parse_scalar(p, f);
  }
  return false;
}

static bool parse_nested(struct path* p, struct st_field nested) {
  struct st_decoder d;
  struct st_field f;
  bool added = false;
  uint32_t index = 0;
  if (p->depth == MAX_DEPTH)
    return false;
  p->depth++;
  st_decoder_init(&d, nested.data, nested.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == NESTED(ARRAY_VALUES) && f.data) {
      index = parse_element(p, f, index, parse_nested);
      added |= index > 0;
    } else {
      added |= parse_nested_scalar(p, f);
    }
  }
  added |= parse_dict(p, nested);
  p->depth--;
  return added;
}

void st_parse_annotation(struct st_importer* m, uint32_t generation,
                         struct st_field annotation, struct st_arg_list* args) {
  struct path p = {.m = m, .args = args, .generation = generation};
  append_name(&p, "debug", 5);
  parse_named(&p, annotation);
  free(p.key.data);
  free(p.flat.data);
}
