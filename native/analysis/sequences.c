#include "sequences.h"

#include <stdlib.h>

#include "core/decoder.h"
#include "core/fields.h"

static uint32_t add_generation(struct st_sequences* s, uint32_t sequence,
                               uint32_t interning) {
  *ST_PUSH(&s->generations) =
      (struct st_generation){.sequence = sequence, .interning = interning};
  return s->generations.size - 1;
}

static uint32_t add_interning(struct st_sequences* s) {
  *ST_PUSH(&s->internings) = (struct st_interning){0};
  return s->internings.size - 1;
}

void st_sequences_init(struct st_sequences* s, struct st_byte_arena* arena,
                       struct st_string_pool* strings) {
  *s = (struct st_sequences){.arena = arena, .strings = strings};
}

uint32_t st_sequence_get(struct st_sequences* s, uint32_t id) {
  uint32_t* index = st_map_at(&s->by_id, (uint64_t)s->source << 32 | id);
  if (!*index) {
    uint32_t added = s->sequences.size;
    uint32_t generation = add_generation(s, added, add_interning(s));
    *ST_PUSH(&s->sequences) =
        (struct st_sequence){.id = id, .generation = generation};
    *index = added + 1;
  }
  return *index - 1;
}

void st_sequence_clear(struct st_sequences* s, uint32_t index) {
  uint32_t generation = add_generation(s, index, add_interning(s));
  s->sequences.data[index].generation = generation;
  s->sequences.data[index].is_valid = true;
  s->sequences.data[index].thread_time = 0;
}

/* Reads a repeated field of integers, packed or not, up to 8 values. */
static void add_uuids(struct st_field f, uint64_t* uuids, uint8_t* count) {
  if (!f.data) {
    if (*count < 8)
      uuids[(*count)++] = f.value;
    return;
  }
  const uint8_t *p = f.data, *end = f.data + f.size;
  uint64_t value;
  while (p && p < end && *count < 8) {
    p = st_get_varint(p, end, &value);
    if (p)
      uuids[(*count)++] = value;
  }
}

static void read_event_defaults(struct st_defaults* defaults,
                                struct st_field event) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, event.data, event.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACK_EVENT_DEFAULTS_TRACK_UUID)
      defaults->track_uuid = f.value;
    else if (f.number ==
             ST_FIELD_TRACK_EVENT_DEFAULTS_EXTRA_COUNTER_TRACK_UUIDS)
      add_uuids(f, defaults->counter_uuids, &defaults->counter_count);
    else if (f.number ==
             ST_FIELD_TRACK_EVENT_DEFAULTS_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS)
      add_uuids(f, defaults->double_uuids, &defaults->double_count);
  }
}

void st_sequence_set_defaults(struct st_sequences* s, uint32_t index,
                              const uint8_t* data, size_t size) {
  struct st_defaults defaults = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID)
      defaults.clock = f.value;
    else if (f.number == ST_FIELD_TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS &&
             f.data)
      read_event_defaults(&defaults, f);
    else if (f.number == ST_FIELD_TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS &&
             f.data) {
      defaults.perf = f;
      defaults.perf.data = st_bytes_copy(s->arena, f.data, f.size);
    }
  }
  struct st_sequence* sequence = &s->sequences.data[index];
  uint32_t interning = s->generations.data[sequence->generation].interning;
  sequence->generation = add_generation(s, index, interning);
  sequence->thread_time = 0;
  s->generations.data[sequence->generation].defaults = defaults;
}

static uint64_t key_of(uint32_t field, uint64_t iid) {
  return iid ^ (uint64_t)field << 56;
}

/* Adds an interned message, unless its iid has an entry already. */
static void intern(struct st_sequences* s, struct st_interning* interning,
                   struct st_field message) {
  struct st_decoder d;
  struct st_field f;
  uint64_t iid = 0;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == 1)
      iid = f.value;
  }
  uint32_t* entry = st_map_at(&interning->index, key_of(message.number, iid));
  if (*entry)
    return;
  *ST_PUSH(&interning->entries) =
      (struct st_interned){st_bytes_copy(s->arena, message.data, message.size),
                           (uint32_t)message.size, 0};
  *entry = interning->entries.size;
}

void st_sequence_intern(struct st_sequences* s, uint32_t index,
                        const uint8_t* data, size_t size) {
  uint32_t generation = s->sequences.data[index].generation;
  struct st_interning* interning =
      &s->internings.data[s->generations.data[generation].interning];
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.data)
      intern(s, interning, f);
  }
}

static struct st_interned* find(struct st_sequences* s, uint32_t generation,
                                uint32_t field, uint64_t iid) {
  struct st_interning* interning =
      &s->internings.data[s->generations.data[generation].interning];
  uint32_t entry = st_map_get(&interning->index, key_of(field, iid));
  if (!entry) {
    s->failed_lookups++;
    return NULL;
  }
  return &interning->entries.data[entry - 1];
}

const struct st_interned* st_interned_find(struct st_sequences* s,
                                           uint32_t generation, uint32_t field,
                                           uint64_t iid) {
  return find(s, generation, field, iid);
}

st_string st_interned_text(struct st_sequences* s, uint32_t generation,
                           uint32_t field, uint64_t iid) {
  struct st_interned* entry = find(s, generation, field, iid);
  if (!entry || entry->text)
    return entry ? entry->text : 0;
  struct st_decoder d;
  struct st_field f;
  entry->text = st_string_of(s->strings, "");
  st_decoder_init(&d, entry->data, entry->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == 2 && f.data)
      entry->text = st_string_add(s->strings, f.data, f.size);
  }
  return entry->text;
}

double st_sequence_sum(struct st_sequences* s, uint32_t generation,
                       uint64_t uuid, double difference) {
  struct st_generation* g = &s->generations.data[generation];
  uint32_t* index = st_map_at(&g->sums, uuid);
  if (!*index) {
    *ST_PUSH(&g->values) = 0;
    *index = g->values.size;
  }
  return g->values.data[*index - 1] += difference;
}

void st_sequences_free(struct st_sequences* s) {
  for (uint32_t i = 0; i < s->generations.size; i++) {
    st_map_free(&s->generations.data[i].sums);
    free(s->generations.data[i].values.data);
  }
  for (uint32_t i = 0; i < s->internings.size; i++) {
    st_map_free(&s->internings.data[i].index);
    free(s->internings.data[i].entries.data);
  }
  free(s->generations.data);
  free(s->internings.data);
  free(s->sequences.data);
  st_map_free(&s->by_id);
}
