#include "schemas.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

enum {
  MAX_NESTING = 16,
  MAX_NAME = 512,
  /* FileDescriptorSet, FileDescriptorProto */
  FILES = 1,
  FILE_PACKAGE = 2,
  FILE_MESSAGES = 4,
  FILE_ENUMS = 5,
  FILE_EXTENSIONS = 7,
  /* DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto */
  NAME = 1,
  MESSAGE_FIELDS = 2,
  MESSAGE_MESSAGES = 3,
  MESSAGE_ENUMS = 4,
  MESSAGE_EXTENSIONS = 6,
  ENUM_VALUES = 2,
  VALUE_NUMBER = 2,
  /* FieldDescriptorProto, FieldOptions */
  FIELD_EXTENDEE = 2,
  FIELD_NUMBER = 3,
  FIELD_LABEL = 4,
  FIELD_TYPE = 5,
  FIELD_TYPE_NAME = 6,
  FIELD_OPTIONS = 8,
  OPTION_PACKED = 2,
  LABEL_REPEATED = 3,
};

/* The name of the message or package that is being read. */
struct scope {
  char name[MAX_NAME];
  size_t size;
  uint32_t depth;
};

static uint64_t key_of(st_string type, uint32_t number) {
  return (uint64_t)type << 32 | number;
}

/* Appends `.` and a name.  Returns the previous size. */
static size_t enter(struct scope* scope, struct st_field name) {
  size_t before = scope->size;
  if (name.data && name.size < MAX_NAME - before) {
    scope->name[scope->size++] = '.';
    memcpy(scope->name + scope->size, name.data, name.size);
    scope->size += name.size;
  }
  return before;
}

static st_string scope_name(struct st_schemas* s, const struct scope* scope) {
  return st_string_add(&s->storage->strings, scope->name, scope->size);
}

static void add_field(struct st_schemas* s, st_string message,
                      struct st_field field) {
  struct st_field f[FIELD_OPTIONS + 1];
  st_message_read(field, f, FIELD_OPTIONS + 1);
  uint32_t* index = st_map_at(&s->by_number,
                              key_of(message, (uint32_t)f[FIELD_NUMBER].value));
  if (*index)
    return;
  *ST_PUSH(&s->fields) = (struct st_field_schema){
      .name = st_field_text(s->storage, f[NAME]),
      .type = st_field_text(s->storage, f[FIELD_TYPE_NAME]),
      .kind = (uint8_t)f[FIELD_TYPE].value,
      .is_repeated = f[FIELD_LABEL].value == LABEL_REPEATED,
      .is_packed = st_message_find(f[FIELD_OPTIONS], OPTION_PACKED).value != 0,
  };
  *index = s->fields.size;
}

static void add_extension(struct st_schemas* s, struct scope* scope,
                          struct st_field field) {
  (void)scope;
  st_string message =
      st_field_text(s->storage, st_message_find(field, FIELD_EXTENDEE));
  add_field(s, message, field);
}

static void add_enum(struct st_schemas* s, struct scope* scope,
                     struct st_field type) {
  size_t before = enter(scope, st_message_find(type, NAME));
  st_string name = scope_name(s, scope);
  struct st_decoder d;
  struct st_field value, f[VALUE_NUMBER + 1];
  st_decoder_init(&d, type.data, type.size);
  while (st_decoder_next(&d, &value)) {
    if (value.number != ENUM_VALUES || !value.data)
      continue;
    st_message_read(value, f, VALUE_NUMBER + 1);
    st_string text = st_field_text(s->storage, f[NAME]);
    uint32_t* known =
        st_map_at(&s->values, key_of(name, (uint32_t)f[VALUE_NUMBER].value));
    if (!*known)
      *known = text;
  }
  scope->size = before;
}

static void add_message(struct st_schemas* s, struct scope* scope,
                        struct st_field message);

/* Calls `add` for the messages of a field. */
static void for_each(struct st_schemas* s, struct scope* scope,
                     struct st_field message, uint32_t field,
                     void (*add)(struct st_schemas*, struct scope*,
                                 struct st_field)) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == field && f.data)
      add(s, scope, f);
  }
}

static void add_own_field(struct st_schemas* s, struct scope* scope,
                          struct st_field field) {
  add_field(s, scope_name(s, scope), field);
}

static void add_message(struct st_schemas* s, struct scope* scope,
                        struct st_field message) {
  if (scope->depth == MAX_NESTING)
    return;
  size_t before = enter(scope, st_message_find(message, NAME));
  scope->depth++;
  *st_map_at(&s->messages, scope_name(s, scope)) = 1;
  for_each(s, scope, message, MESSAGE_FIELDS, add_own_field);
  for_each(s, scope, message, MESSAGE_ENUMS, add_enum);
  for_each(s, scope, message, MESSAGE_MESSAGES, add_message);
  for_each(s, scope, message, MESSAGE_EXTENSIONS, add_extension);
  scope->depth--;
  scope->size = before;
}

static void add_file(struct st_schemas* s, struct scope* scope,
                     struct st_field file) {
  size_t before = enter(scope, st_message_find(file, FILE_PACKAGE));
  for_each(s, scope, file, FILE_MESSAGES, add_message);
  for_each(s, scope, file, FILE_ENUMS, add_enum);
  for_each(s, scope, file, FILE_EXTENSIONS, add_extension);
  scope->size = before;
}

void st_schemas_add(struct st_schemas* s, const uint8_t* data, size_t size) {
  struct scope scope = {.size = 0};
  for_each(s, &scope, (struct st_field){.data = data, .size = size}, FILES,
           add_file);
}

bool st_schema_is_known(const struct st_schemas* s, st_string message) {
  return st_map_get(&s->messages, message) != 0;
}

const struct st_field_schema* st_schema_field(const struct st_schemas* s,
                                              st_string message,
                                              uint32_t number) {
  uint32_t index = st_map_get(&s->by_number, key_of(message, number));
  return index ? &s->fields.data[index - 1] : NULL;
}

st_string st_schema_value(const struct st_schemas* s, st_string type,
                          int32_t number) {
  return st_map_get(&s->values, key_of(type, (uint32_t)number));
}

void st_schemas_free(struct st_schemas* s) {
  free(s->fields.data);
  st_map_free(&s->messages);
  st_map_free(&s->by_number);
  st_map_free(&s->values);
}
