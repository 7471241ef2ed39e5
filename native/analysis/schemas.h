/* Schemas: the fields of messages and the values of enums, by number.  They
 * come from FileDescriptorSets, the importer's own and those in traces.
 *
 * A set adds its types, and adds fields and values to types that are known: the
 * first definition of a number counts.  The types of fields are resolved when
 * they are used.
 *
 * Limits: messages are nested at most MAX_NESTING deep.
 */
#pragma once

#include "core/decoder.h"
#include "storage.h"

/* The values of FieldDescriptorProto.Type. */
enum st_field_kind {
  ST_KIND_DOUBLE = 1,
  ST_KIND_FLOAT = 2,
  ST_KIND_INT64 = 3,
  ST_KIND_UINT64 = 4,
  ST_KIND_INT32 = 5,
  ST_KIND_FIXED64 = 6,
  ST_KIND_FIXED32 = 7,
  ST_KIND_BOOL = 8,
  ST_KIND_STRING = 9,
  ST_KIND_MESSAGE = 11,
  ST_KIND_BYTES = 12,
  ST_KIND_UINT32 = 13,
  ST_KIND_ENUM = 14,
  ST_KIND_SFIXED32 = 15,
  ST_KIND_SFIXED64 = 16,
  ST_KIND_SINT32 = 17,
  ST_KIND_SINT64 = 18,
};

struct st_field_schema {
  st_string name;
  st_string type; /* Of a message or enum: its name, such as `.package.Type`. */
  uint8_t kind;
  bool is_repeated, is_packed;
};

struct st_schemas {
  struct st_storage* storage;
  ST_ARRAY(struct st_field_schema) fields;
  struct st_map messages;  /* Names of messages to 1. */
  struct st_map by_number; /* Message and number to field + 1. */
  struct st_map values;    /* Enum and number to the value's name. */
};

/* Reads a FileDescriptorSet. */
void st_schemas_add(struct st_schemas* s, const uint8_t* data, size_t size);
/* Returns whether a message is known. */
bool st_schema_is_known(const struct st_schemas* s, st_string message);
/* Returns a field of a message; NULL if it is unknown.  The address is valid
 * until schemas are added. */
const struct st_field_schema* st_schema_field(const struct st_schemas* s,
                                              st_string message,
                                              uint32_t number);
/* Returns the name of an enum's value; 0 if it is unknown. */
st_string st_schema_value(const struct st_schemas* s, st_string type,
                          int32_t number);
void st_schemas_free(struct st_schemas* s);
