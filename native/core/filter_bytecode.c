#include "filter_bytecode.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum {
  /* A table holds one rule for each field with a number below this limit. */
  DIRECT_LIMIT = 128,
  RANGE_WORDS = 3,
  TRIPLET_WORDS = 3,
  MAX_FIELD = UINT32_MAX >> 3,
  SEMANTIC_TYPE_MASK = 0xFFFF,
  MAX_SEMANTIC_TYPE = 0xFFFD,
};

static const char kOutOfMemory[] = "there is no memory for it";

static bool push(struct st_filter_words* w, uint32_t word) {
  if (w->count == w->capacity) {
    size_t capacity = w->capacity ? 2 * w->capacity : 64;
    uint32_t* data = realloc(w->data, capacity * sizeof *data);
    if (!data)
      return false;
    w->data = data;
    w->capacity = capacity;
  }
  w->data[w->count++] = word;
  return true;
}

static uint64_t hash_word(uint64_t hash, uint32_t word) {
  for (int i = 0; i < 4; i++) {
    hash ^= word >> (8 * i) & 0xFF;
    hash *= 0x100000001B3u;
  }
  return hash;
}

/* Decodes the varints of the bytecode into words.  The last word is the
 * checksum; it is checked and removed.  Returns what is wrong, or NULL. */
static const char* read_words(const uint8_t* p, size_t size,
                              struct st_filter_words* out) {
  const uint8_t* end = p + size;
  uint64_t hash = 0xCBF29CE484222325u, value;
  if (!size)
    return "it is empty";
  while (p < end) {
    p = st_get_varint(p, end, &value);
    if (!p)
      return "it ends within a varint, or holds one of more than 10 bytes";
    if (!push(out, (uint32_t)value))
      return kOutOfMemory;
  }
  uint32_t checksum = out->data[--out->count];
  for (size_t i = 0; i < out->count; i++)
    hash = hash_word(hash, out->data[i]);
  return (uint32_t)hash == checksum ? NULL : "its checksum is wrong";
}

struct loader {
  struct st_filter_bytecode* out;
  struct st_filter_words code;
  size_t at;
  struct st_filter_words overlay;
  size_t overlay_at;
  uint32_t direct[DIRECT_LIMIT];
  uint32_t direct_count;
  struct st_filter_words ranges;
  /* The highest number of a message that a nested field refers to. */
  uint32_t highest_nested;
};

static const char* add_range(struct loader* l, uint32_t first, uint32_t end,
                             uint32_t rule) {
  size_t n = l->ranges.count;
  if (n && first < l->ranges.data[n - 2])
    return "its ranges of fields overlap or aren't sorted";
  if (!push(&l->ranges, first) || !push(&l->ranges, end) ||
      !push(&l->ranges, rule))
    return kOutOfMemory;
  return NULL;
}

static const char* add_field(struct loader* l, uint32_t field, uint32_t rule) {
  if (field >= DIRECT_LIMIT)
    return add_range(l, field, field + 1, rule);
  l->direct[field] = rule;
  if (l->direct_count <= field)
    l->direct_count = field + 1;
  return NULL;
}

/* Adds a rule for a range of field numbers.  Numbers below DIRECT_LIMIT get an
 * entry each in the message's table, the others become a range of the message.
 * A range whose end would exceed 2^32 is empty. */
static const char* add_fields(struct loader* l, uint32_t first,
                              uint32_t count) {
  uint32_t end = first + count;
  for (; first < end && first < DIRECT_LIMIT; first++)
    add_field(l, first, ST_FILTER_RULE_SIMPLE);
  return first < end ? add_range(l, first, end, ST_FILTER_RULE_SIMPLE) : NULL;
}

static const char* end_message(struct loader* l) {
  struct st_filter_words* words = &l->out->words;
  bool ok = push(&l->out->offsets, (uint32_t)words->count) &&
            push(words, l->direct_count);
  for (uint32_t i = 0; ok && i < l->direct_count; i++)
    ok = push(words, l->direct[i]);
  for (size_t i = 0; ok && i < l->ranges.count; i++)
    ok = push(words, l->ranges.data[i]);
  memset(l->direct, 0, sizeof l->direct);
  l->direct_count = 0;
  l->ranges.count = 0;
  return ok ? NULL : kOutOfMemory;
}

/* Limits the semantic type to MAX_SEMANTIC_TYPE.  The two highest 16-bit types
 * would turn the rule into ST_FILTER_RULE_STRING or _SIMPLE.  All types above
 * 127 are handled alike, so the limit changes no result. */
static uint32_t semantic_type(uint32_t argument) {
  uint32_t type = argument & SEMANTIC_TYPE_MASK;
  return type < MAX_SEMANTIC_TYPE ? type : MAX_SEMANTIC_TYPE;
}

static uint32_t rule_of(uint32_t opcode, uint32_t argument) {
  switch (opcode) {
    case ST_FILTER_SIMPLE_FIELD:
      return ST_FILTER_RULE_SIMPLE;
    case ST_FILTER_STRING:
      return ST_FILTER_RULE_STRING;
    case ST_FILTER_STRING_WITH_TYPE:
      return ST_FILTER_RULE_TYPED_STRING | semantic_type(argument);
    default:
      return ST_FILTER_DENIED;
  }
}

/* Returns the sort key of an overlay triplet: its message number and field
 * number. */
static uint64_t triplet_key(const uint32_t* triplet) {
  return (uint64_t)triplet[0] << 32 | triplet[1] >> 3;
}

static const char* check_overlay(const struct st_filter_words* overlay) {
  if (overlay->count % TRIPLET_WORDS)
    return "its overlay ends within a triplet";
  for (size_t i = 0; i < overlay->count; i += TRIPLET_WORDS) {
    const uint32_t* triplet = overlay->data + i;
    if (!(triplet[1] >> 3) || !rule_of(triplet[1] & 7, triplet[2]))
      return "its overlay has an opcode other than 1, 4 and 5, or a field 0";
    if (i && triplet_key(triplet) <= triplet_key(triplet - TRIPLET_WORDS))
      return "its overlay isn't sorted by message and field";
  }
  return NULL;
}

/* Applies the overlay's rules for the current message, for fields up to
 * `field`. If the overlay has a rule for `field`, the rule is stored in
 * *rule. */
static const char* merge_overlay(struct loader* l, uint32_t field,
                                 uint32_t* rule) {
  uint32_t message = (uint32_t)l->out->offsets.count;
  for (; l->overlay_at < l->overlay.count; l->overlay_at += TRIPLET_WORDS) {
    const uint32_t* triplet = l->overlay.data + l->overlay_at;
    uint32_t added = triplet[1] >> 3;
    if (triplet[0] != message || added > field)
      break;
    uint32_t added_rule = rule_of(triplet[1] & 7, triplet[2]);
    if (added == field) {
      *rule = added_rule;
      continue;
    }
    const char* error = add_field(l, added, added_rule);
    if (error)
      return error;
  }
  return NULL;
}

static bool has_argument(uint32_t opcode) {
  return opcode == ST_FILTER_SIMPLE_FIELD_RANGE ||
         opcode == ST_FILTER_NESTED_FIELD ||
         opcode == ST_FILTER_STRING_WITH_TYPE;
}

static const char* load_field(struct loader* l, uint32_t opcode, uint32_t field,
                              uint32_t argument) {
  if (opcode == ST_FILTER_SIMPLE_FIELD_RANGE)
    return add_fields(l, field, argument);
  uint32_t rule = rule_of(opcode, argument);
  if (opcode == ST_FILTER_NESTED_FIELD) {
    if (argument > l->highest_nested)
      l->highest_nested = argument;
    rule = ST_FILTER_ALLOWED | argument;
  }
  if (!rule)
    return "it has an unknown opcode";
  const char* error = merge_overlay(l, field, &rule);
  return error ? error : add_field(l, field, rule);
}

static const char* load_word(struct loader* l) {
  uint32_t word = l->code.data[l->at++], opcode = word & 7, field = word >> 3;
  uint32_t argument = 0, none = 0;
  if (opcode == ST_FILTER_END_OF_MESSAGE) {
    const char* error = merge_overlay(l, MAX_FIELD + 1u, &none);
    return error ? error : end_message(l);
  }
  if (!field)
    return "it has a field number 0";
  if (has_argument(opcode)) {
    if (l->at == l->code.count)
      return "it ends within an instruction";
    argument = l->code.data[l->at++];
  }
  return load_field(l, opcode, field, argument);
}

static const char* load_messages(struct loader* l) {
  bool ended = true;
  while (l->at < l->code.count) {
    ended = (l->code.data[l->at] & 7) == ST_FILTER_END_OF_MESSAGE;
    const char* error = load_word(l);
    if (error)
      return error;
  }
  size_t messages = l->out->offsets.count;
  if (!ended)
    return "its last message has no end";
  if (l->highest_nested && l->highest_nested >= messages)
    return "it refers to a message that it doesn't have";
  if (l->overlay_at < l->overlay.count)
    return "its overlay has fields of a message that it doesn't have";
  return push(&l->out->offsets, (uint32_t)l->out->words.count) ? NULL
                                                               : kOutOfMemory;
}

static const char* load(struct loader* l, const uint8_t* data, size_t size,
                        const uint8_t* overlay, size_t overlay_size) {
  const char* error = read_words(data, size, &l->code);
  if (!error && overlay_size) {
    error = read_words(overlay, overlay_size, &l->overlay);
    if (!error)
      error = check_overlay(&l->overlay);
  }
  return error ? error : load_messages(l);
}

const char* st_filter_bytecode_load(struct st_filter_bytecode* b,
                                    const uint8_t* data, size_t size,
                                    const uint8_t* overlay,
                                    size_t overlay_size) {
  *b = (struct st_filter_bytecode){0};
  struct loader l = {.out = b};
  const char* error = load(&l, data, size, overlay, overlay_size);
  free(l.code.data);
  free(l.overlay.data);
  free(l.ranges.data);
  if (error)
    st_filter_bytecode_free(b);
  return error;
}

void st_filter_bytecode_free(struct st_filter_bytecode* b) {
  free(b->words.data);
  free(b->offsets.data);
  *b = (struct st_filter_bytecode){0};
}

size_t st_filter_bytecode_messages(const struct st_filter_bytecode* b) {
  return b->offsets.count ? b->offsets.count - 1 : 0;
}

static uint32_t find_range(const uint32_t* ranges, size_t count,
                           uint32_t field) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const uint32_t* range = ranges + RANGE_WORDS * middle;
    if (field < range[0])
      high = middle;
    else if (field >= range[1])
      low = middle + 1;
    else
      return range[2];
  }
  return ST_FILTER_DENIED;
}

uint32_t st_filter_bytecode_query(const struct st_filter_bytecode* b,
                                  uint32_t message, uint32_t field) {
  if (message >= st_filter_bytecode_messages(b))
    return ST_FILTER_DENIED;
  const uint32_t* words = b->words.data + b->offsets.data[message];
  const uint32_t* end = b->words.data + b->offsets.data[message + 1];
  uint32_t direct_count = *words++;
  if (field < direct_count)
    return words[field];
  if (field < DIRECT_LIMIT)
    return ST_FILTER_DENIED;
  words += direct_count;
  return find_range(words, (size_t)(end - words) / RANGE_WORDS, field);
}
