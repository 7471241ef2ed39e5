#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum { NUMBER = 9900 };

static struct message field(const char* name, uint64_t number, uint64_t type,
                            const char* type_name) {
  struct message f = {0};
  add_text(&f, 1, name);
  add_number(&f, 3, number);
  add_number(&f, 5, type);
  if (type_name)
    add_text(&f, 6, type_name);
  return f;
}

/* A set with the message .own.Outer, in which the enum Kind is nested, and an
 * extension of TrackEvent. */
static struct message schema(const char* name_of_first) {
  struct message set = {0}, file = {0}, outer = {0}, kind = {0}, value = {0};
  struct message first = field(name_of_first, 1, ST_KIND_INT32, NULL);
  struct message second = field("kind", 2, ST_KIND_ENUM, ".own.Outer.Kind");
  struct message extension =
      field("own", NUMBER, ST_KIND_MESSAGE, ".own.Outer");
  add_text(&value, 1, "FIVE");
  add_number(&value, 2, 5);
  add_text(&kind, 1, "Kind");
  add_message(&kind, 2, &value);
  add_text(&outer, 1, "Outer");
  add_message(&outer, 2, &first);
  add_message(&outer, 2, &second);
  add_message(&outer, 4, &kind);
  add_text(&extension, 2, ".perfetto.protos.TrackEvent");
  add_text(&file, 2, "own");
  add_message(&file, 4, &outer);
  add_message(&file, 7, &extension);
  add_message(&set, 1, &file);
  return set;
}

static void fields_and_values_are_found_by_number(void) {
  struct st_importer* m = st_importer_new();
  struct st_schemas* s = &m->schemas;
  struct message set = schema("first");
  st_string outer = st_intern(&m->storage, ".own.Outer");
  CHECK(!st_schema_is_known(s, outer));
  st_schemas_add(s, set.data, set.size);
  CHECK(st_schema_is_known(s, outer));
  CHECK(!st_schema_field(s, outer, 3));
  const struct st_field_schema* kind = st_schema_field(s, outer, 2);
  CHECK(kind && kind->kind == ST_KIND_ENUM);
  CHECK_EQ(st_schema_value(s, kind->type, 5), st_intern(&m->storage, "FIVE"));
  CHECK_EQ(st_schema_value(s, kind->type, 6), 0);
  st_importer_free(m);
}

static void first_definition_of_a_field_counts(void) {
  struct st_importer* m = st_importer_new();
  struct message first = schema("first"), again = schema("again");
  st_schemas_add(&m->schemas, first.data, first.size);
  st_schemas_add(&m->schemas, again.data, again.size);
  const struct st_field_schema* f =
      st_schema_field(&m->schemas, st_intern(&m->storage, ".own.Outer"), 1);
  CHECK(f && f->name == st_intern(&m->storage, "first"));
  st_importer_free(m);
}

static void deep_messages_are_left_out(void) {
  struct st_importer* m = st_importer_new();
  struct message inner = {0};
  for (uint32_t i = 0; i < 100; i++) {
    struct message outer = {0};
    add_text(&outer, 1, "M");
    add_message(&outer, 3, &inner);
    inner = outer;
  }
  struct message file = {0}, set = {0};
  add_message(&file, 4, &inner);
  add_message(&set, 1, &file);
  st_schemas_add(&m->schemas, set.data, set.size);
  CHECK(st_schema_is_known(&m->schemas, st_intern(&m->storage, ".M.M.M")));
  st_importer_free(m);
}

static void feed(struct st_importer* m, const struct message* packet) {
  uint8_t data[sizeof packet->data + 16];
  uint8_t* end = st_put_bytes_field(data, 1, packet->data, packet->size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
}

static void schema_in_a_trace_names_the_arguments_of_events(void) {
  struct st_importer* m = st_importer_new();
  struct message event = track_event(ST_ENUM_TRACK_EVENT_TYPE_INSTANT, 7, "e");
  struct message own = {0}, packet = begin_packet(2, 10);
  struct message set = schema("first"), extension = {0}, last = {0};
  add_number(&own, 1, 12);
  add_number(&own, 2, 5);
  add_number(&own, 77, 1);
  add_message(&event, NUMBER, &own);
  add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_EVENT, &event);
  feed(m, &packet);
  add_message(&extension, 1, &set);
  add_message(&last, ST_FIELD_TRACE_PACKET_EXTENSION_DESCRIPTOR, &extension);
  feed(m, &last);
  CHECK(st_importer_finish(m));
  uint32_t row = (uint32_t)get(m, ST_SLICE_TABLE, 0, ST_SLICE_arg_set_id);
  CHECK(is_text(m, ST_ARGS_TABLE, row, ST_ARGS_key, "own.first"));
  CHECK_EQ(get(m, ST_ARGS_TABLE, row, ST_ARGS_int_value), 12);
  CHECK(is_text(m, ST_ARGS_TABLE, row + 1, ST_ARGS_key, "own.kind"));
  CHECK(is_text(m, ST_ARGS_TABLE, row + 1, ST_ARGS_string_value, "FIVE"));
  CHECK_EQ(m->counts.unknown_fields, 1);
  st_importer_free(m);
}

int main(void) {
  RUN(fields_and_values_are_found_by_number);
  RUN(first_definition_of_a_field_counts);
  RUN(deep_messages_are_left_out);
  RUN(schema_in_a_trace_names_the_arguments_of_events);
  return 0;
}
