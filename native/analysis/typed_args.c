/* Arguments of messages, whose fields are named by schemas.
 *
 * Some fields are ids of interned data; the data become the arguments. */
#include <string.h>

#include "arg_path.h"
#include "core/fields.h"
#include "event_parts.h"
#include "importer.h"
#include "messages.h"

#define INTERNED(name) ST_FIELD_INTERNED_DATA_##name

enum {
  MAX_REPEATED = 64, /* Fields of a message whose values are counted. */
  /* UnsymbolizedSourceLocation */
  LOCATION_MAPPING = 2,
  LOCATION_PC = 3,
};

/* The numbers of values that a message has had, by repeated field. */
struct repeated {
  uint32_t size;
  struct {
    uint32_t field, count;
  } fields[MAX_REPEATED];
};

static uint32_t next_index(struct repeated* r, uint32_t field) {
  uint32_t i = 0;
  while (i < r->size && r->fields[i].field != field)
    i++;
  if (i == MAX_REPEATED)
    return 0;
  if (i == r->size) {
    r->fields[r->size].count = 0;
    r->fields[r->size++].field = field;
  }
  return r->fields[i].count++;
}

static void add_number(struct st_arg_path* p, int64_t number) {
  char text[24];
  size_t at = sizeof text;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do
    text[--at] = (char)('0' + left % 10);
  while (left /= 10);
  if (number < 0)
    text[--at] = '-';
  st_path_add_text(p, st_string_add(p->strings, text + at, sizeof text - at));
}

static void add_base64(struct st_arg_path* p, struct st_field f) {
  static const char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char* text = st_bytes_take(&p->m->arena, (f.size + 2) / 3 * 4);
  size_t size = 0;
  for (size_t i = 0; i < f.size; i += 3) {
    size_t n = f.size - i < 3 ? f.size - i : 3;
    uint32_t bits = (uint32_t)f.data[i] << 16 |
                    (n > 1 ? (uint32_t)f.data[i + 1] << 8 : 0) |
                    (n > 2 ? f.data[i + 2] : 0);
    for (uint32_t digit = 0; digit < 4; digit++)
      text[size++] = digit > n ? '=' : kDigits[bits >> (18 - 6 * digit) & 0x3F];
  }
  st_path_add_text(p, st_string_add(p->strings, text, size));
}

static int64_t unzigzag(uint64_t value) {
  return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static double real_of(uint8_t kind, uint64_t bits) {
  double real;
  float single;
  uint32_t low = (uint32_t)bits;
  memcpy(&real, &bits, sizeof real);
  memcpy(&single, &low, sizeof single);
  return kind == ST_KIND_FLOAT ? (double)single : real;
}

static void add_value(struct st_arg_path* p, const struct st_field_schema* s,
                      struct st_field f) {
  switch (s->kind) {
    case ST_KIND_DOUBLE:
    case ST_KIND_FLOAT:
      st_path_add_real(p, real_of(s->kind, f.value));
      break;
    case ST_KIND_INT64:
    case ST_KIND_SFIXED64:
      st_path_add_int(p, ST_ARG_INT, (int64_t)f.value);
      break;
    case ST_KIND_INT32:
    case ST_KIND_SFIXED32:
      st_path_add_int(p, ST_ARG_INT, (int32_t)f.value);
      break;
    case ST_KIND_SINT32:
    case ST_KIND_SINT64:
      st_path_add_int(p, ST_ARG_INT, unzigzag(f.value));
      break;
    case ST_KIND_UINT64:
    case ST_KIND_FIXED64:
      st_path_add_int(p, ST_ARG_UINT, (int64_t)f.value);
      break;
    case ST_KIND_UINT32:
    case ST_KIND_FIXED32:
      st_path_add_int(p, ST_ARG_UINT, (uint32_t)f.value);
      break;
    case ST_KIND_BOOL:
      st_path_add_int(p, ST_ARG_BOOL, f.value != 0);
      break;
    case ST_KIND_STRING:
      st_path_add_text(p, st_string_add(p->strings, f.data, f.size));
      break;
    case ST_KIND_BYTES:
      add_base64(p, f);
      break;
    default: {
      st_string name =
          st_schema_value(&p->m->schemas, s->type, (int32_t)f.value);
      if (name)
        st_path_add_text(p, name);
      else
        add_number(p, (int32_t)f.value);
    }
  }
}

/* Returns whether the path is this key. */
static bool is_key(const struct st_arg_path* p, const char* key) {
  const st_path_key* flat = p->has_index ? &p->flat : &p->key;
  return flat->size == strlen(key) && memcmp(flat->data, key, flat->size) == 0;
}

/* Adds the mapping and address of a method of Mojo. */
static bool add_method(struct st_arg_path* p, uint64_t iid) {
  static const char kMapping[] =
      "chrome_mojo_event_info.mojo_interface_method.native_symbol.mapping_id";
  static const char kPc[] =
      "chrome_mojo_event_info.mojo_interface_method.native_symbol.rel_pc";
  struct st_field f[LOCATION_PC + 1];
  const struct st_interned* found =
      st_interned_find(&p->m->sequences, p->generation,
                       INTERNED(UNSYMBOLIZED_SOURCE_LOCATIONS), iid);
  if (!found)
    return false;
  st_message_read((struct st_field){.data = found->data, .size = found->size},
                  f, LOCATION_PC + 1);
  uint32_t mapping =
      st_sequence_mapping(p->m, p->generation, f[LOCATION_MAPPING].value);
  if (mapping == ST_NO_ROW)
    return false;
  st_arg_add_int(p->args, st_intern(&p->m->storage, kMapping), ST_ARG_UINT,
                 mapping);
  st_arg_add_int(p->args, st_intern(&p->m->storage, kPc), ST_ARG_UINT,
                 (int64_t)f[LOCATION_PC].value);
  return true;
}

/* Adds interned data in place of their id.  Returns false if the field isn't
 * such an id, or if the data are missing. */
static bool add_interned(struct st_arg_path* p, uint64_t iid) {
  static const char* const kLocations[] = {
      "begin_impl_frame_args.current_args.source_location_iid",
      "begin_impl_frame_args.last_args.source_location_iid",
      "begin_frame_observer_state.last_begin_frame_args.source_location_iid",
      "chrome_memory_pressure_notification.creation_location_iid",
  };
  if (is_key(p, "chrome_mojo_event_info.mojo_interface_method_iid"))
    return add_method(p, iid);
  for (uint32_t i = 0; i < sizeof kLocations / sizeof *kLocations; i++) {
    if (!is_key(p, kLocations[i]))
      continue;
    size_t size = (size_t)(strrchr(kLocations[i], '.') - kLocations[i]);
    char prefix[64] = {0};
    memcpy(prefix, kLocations[i], size);
    return st_add_location_args(p->m, p->generation, iid, prefix, p->args);
  }
  return false;
}

static uint32_t wire_type(uint8_t kind) {
  switch (kind) {
    case ST_KIND_DOUBLE:
    case ST_KIND_FIXED64:
    case ST_KIND_SFIXED64:
      return ST_WIRE_FIXED64;
    case ST_KIND_FLOAT:
    case ST_KIND_FIXED32:
    case ST_KIND_SFIXED32:
      return ST_WIRE_FIXED32;
    default:
      return ST_WIRE_VARINT;
  }
}

static void parse_message(struct st_arg_path* p, st_string type,
                          struct st_field message, bool is_event);

/* Parses one value of a field.  `index` is its index if it is repeated. */
static void parse_value(struct st_arg_path* p, struct st_field_schema s,
                        struct st_field f, uint32_t index) {
  struct st_path_mark mark = st_path_mark(p);
  size_t size;
  const char* name = st_string_text(p->strings, s.name, &size);
  bool is_text = s.kind == ST_KIND_STRING || s.kind == ST_KIND_BYTES;
  if (s.type == p->m->texts.annotation) {
    st_parse_named_annotation(p, f);
    return;
  }
  st_path_append(p, name, size);
  if (s.is_repeated)
    st_path_append_index(p, index);
  if (s.kind == ST_KIND_MESSAGE && f.data)
    parse_message(p, s.type, f, false);
  else if (s.kind != ST_KIND_MESSAGE && is_text == (f.data != NULL) &&
           !(s.kind == ST_KIND_UINT64 && add_interned(p, f.value)))
    add_value(p, &s, f);
  st_path_return(p, mark);
}

static void parse_packed(struct st_arg_path* p, struct st_field_schema s,
                         struct st_field f, struct repeated* repeated) {
  const uint8_t *at = f.data, *end = f.data + f.size;
  uint32_t wire = wire_type(s.kind);
  struct st_field element = {.number = f.number, .wire_type = wire};
  while (at && at < end) {
    at = st_get_element(at, end, wire, &element.value);
    if (at)
      parse_value(p, s, element, next_index(repeated, f.number));
  }
}

static void parse_field(struct st_arg_path* p, st_string type,
                        struct st_field f, struct repeated* repeated) {
  const struct st_field_schema* known =
      st_schema_field(&p->m->schemas, type, f.number);
  if (!known)
    p->m->counts.unknown_fields++;
  else if (known->is_packed && f.data)
    parse_packed(p, *known, f, repeated);
  else
    parse_value(p, *known, f,
                known->is_repeated ? next_index(repeated, f.number) : 0);
}

/* Parses the fields of a message; of a track event, those that are arguments.
 */
static void parse_message(struct st_arg_path* p, st_string type,
                          struct st_field message, bool is_event) {
  struct repeated repeated = {0};
  struct st_decoder d;
  struct st_field f;
  if (p->depth == ST_MAX_DEPTH)
    return;
  p->depth++;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (!is_event || st_parts_of(f.number) & ST_PART_TYPED)
      parse_field(p, type, f, &repeated);
  }
  p->depth--;
  if (!message.size)
    st_path_add_int(p, ST_ARG_EMPTY, 0);
}

void st_parse_typed_args(struct st_arg_path* p, st_string type,
                         struct st_field message) {
  parse_message(p, type, message, false);
}

void st_parse_event_fields(struct st_importer* m, const struct st_event* e,
                           struct st_arg_list* args) {
  struct st_arg_path* p = st_path_begin(m, e->generation, args);
  parse_message(p, st_intern(&m->storage, ".perfetto.protos.TrackEvent"),
                (struct st_field){.data = e->data, .size = e->size}, true);
}
