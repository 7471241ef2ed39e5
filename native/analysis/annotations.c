/* Debug annotations become arguments: dictionaries and arrays are flattened. */
#include <string.h>

#include "arg_path.h"
#include "core/fields.h"
#include "importer.h"
#include "messages.h"

#define FIELD(name) ST_FIELD_DEBUG_ANNOTATION_##name
#define NESTED(name) ST_FIELD_DEBUG_ANNOTATION_NESTED_VALUE_##name

static double real_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static bool parse_value(struct st_arg_path* p, struct st_field annotation);

static bool parse_nested(struct st_arg_path* p, struct st_field nested);

/* Calls parse() for an element of an array.  Returns the next index. */
static uint32_t parse_element(struct st_arg_path* p, struct st_field element,
                              uint32_t index,
                              bool (*parse)(struct st_arg_path*,
                                            struct st_field)) {
  struct st_path_mark mark = st_path_mark(p);
  st_path_append_index(p, index);
  bool added = parse(p, element);
  st_path_return(p, mark);
  return index + added;
}

static bool parse_scalar(struct st_arg_path* p, struct st_field f) {
  switch (f.number) {
    case FIELD(BOOL_VALUE):
      st_path_add_int(p, ST_ARG_BOOL, f.value != 0);
      return true;
    case FIELD(UINT_VALUE):
      st_path_add_int(p, ST_ARG_UINT, (int64_t)f.value);
      return true;
    case FIELD(INT_VALUE):
      st_path_add_int(p, ST_ARG_INT, (int64_t)f.value);
      return true;
    case FIELD(POINTER_VALUE):
      st_path_add_int(p, ST_ARG_POINTER, (int64_t)f.value);
      return true;
    case FIELD(DOUBLE_VALUE):
      st_path_add_real(p, real_of(f.value));
      return true;
    case FIELD(STRING_VALUE):
      if (f.data)
        st_path_add_text(p, st_string_add(p->strings, f.data, f.size));
      return f.data != NULL;
    case FIELD(STRING_VALUE_IID): {
      st_string text = st_interned_text(
          &p->m->sequences, p->generation,
          ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, f.value);
      if (text)
        st_path_add_text(p, text);
      return text != 0;
    }
    default:
      return false;
  }
}

/* What a first pass over an annotation finds. */
struct parts {
  struct st_field name, value; /* The last ones. */
  uint64_t name_iid;
  uint32_t values; /* The number of fields that are no name. */
};

static struct parts find_parts(struct st_field annotation) {
  struct parts found = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, annotation.data, annotation.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FIELD(NAME_IID)) {
      found.name_iid = f.value;
    } else if (f.number == FIELD(NAME) && f.data) {
      found.name = f;
    } else {
      found.value = f;
      found.values++;
    }
  }
  found.values += st_decoder_left(&d) > 0; /* parse_value() counts this. */
  return found;
}

static bool append_annotation_name(struct st_arg_path* p,
                                   const struct parts* parts) {
  size_t size = parts->name.size;
  const char* text = (const char*)parts->name.data;
  if (parts->name_iid) {
    st_string id = st_interned_text(
        &p->m->sequences, p->generation,
        ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_NAMES, parts->name_iid);
    text = id ? st_string_text(&p->m->storage.strings, id, &size) : NULL;
  }
  if (text)
    st_path_append_clean(p, text, size);
  else
    p->m->counts.parser_errors++;
  return text != NULL;
}

static bool is_scalar(uint32_t field) {
  return (field >= FIELD(BOOL_VALUE) && field <= FIELD(POINTER_VALUE)) ||
         field == FIELD(STRING_VALUE_IID);
}

/* Parses the value of an annotation whose name has been appended.  One with a
 * single scalar, as nearly all have, needs no second pass. */
static bool parse_found(struct st_arg_path* p, struct st_field annotation,
                        const struct parts* parts) {
  bool is_simple = parts->values == 1 && is_scalar(parts->value.number) &&
                   p->depth < ST_MAX_DEPTH;
  return is_simple ? parse_scalar(p, parts->value) : parse_value(p, annotation);
}

/* Parses an annotation with a name, below the current key. */
static bool parse_named(struct st_arg_path* p, struct st_field annotation) {
  struct parts parts = find_parts(annotation);
  struct st_path_mark mark = st_path_mark(p);
  bool added =
      append_annotation_name(p, &parts) && parse_found(p, annotation, &parts);
  st_path_return(p, mark);
  return added;
}

/* Parses a message; the annotation has the name of its type. */
static bool parse_message(struct st_arg_path* p, struct st_field annotation,
                          struct st_field message) {
  struct st_field name = st_message_find(annotation, FIELD(PROTO_TYPE_NAME));
  struct st_field iid = st_message_find(annotation, FIELD(PROTO_TYPE_NAME_IID));
  st_string type =
      name.data ? st_field_text(&p->m->storage, name)
                : st_interned_text(
                      &p->m->sequences, p->generation,
                      ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_VALUE_TYPE_NAMES,
                      iid.value);
  bool is_known = type && st_schema_is_known(&p->m->schemas, type);
  if (is_known)
    st_parse_typed_args(p, type, message);
  else
    p->m->counts.parser_errors++;
  return is_known;
}

static bool parse_value(struct st_arg_path* p, struct st_field annotation) {
  struct st_decoder d;
  struct st_field f;
  bool added = false;
  uint32_t index = 0;
  if (p->depth == ST_MAX_DEPTH)
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
    } else if (f.number == FIELD(LEGACY_JSON_VALUE) && f.data) {
      const char* at = (const char*)f.data;
      st_add_json(p, st_json_read(&at, at + f.size));
      added = true;
    } else if (f.number == FIELD(PROTO_VALUE) && f.data) {
      added |= parse_message(p, annotation, f);
    } else {
      added |= parse_scalar(p, f);
    }
  }
  p->m->counts.undecodable_arguments += st_decoder_left(&d) > 0;
  p->depth--;
  return added;
}

/* The old form of dictionaries: keys and values are two lists. */
static bool parse_dict(struct st_arg_path* p, struct st_field nested) {
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
    struct st_path_mark mark = st_path_mark(p);
    st_path_append_clean(p, (const char*)k.data, k.size);
    added |= parse_nested(p, v);
    st_path_return(p, mark);
  }
  return added;
}

/* Parses a scalar of a NestedValue.  The types are those of an annotation's
 * scalars, but the field numbers differ. */
static bool parse_nested_scalar(struct st_arg_path* p, struct st_field f) {
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

static bool parse_nested(struct st_arg_path* p, struct st_field nested) {
  struct st_decoder d;
  struct st_field f;
  bool added = false;
  uint32_t index = 0;
  if (p->depth == ST_MAX_DEPTH)
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

void st_parse_named_annotation(struct st_arg_path* p,
                               struct st_field annotation) {
  parse_named(p, annotation);
}

void st_parse_annotation(struct st_importer* m, uint32_t generation,
                         struct st_field annotation, struct st_arg_list* args) {
  struct st_arg_path* p = st_path_begin(m, generation, args);
  st_path_append(p, "debug", 5);
  parse_named(p, annotation);
}
