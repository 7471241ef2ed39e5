/* Checks track events in the order of the file, and queues them.
 *
 * Values of counters are made absolute here, because differences depend on the
 * order of the file.  Other fields are read when the event is parsed. */
#include <string.h>

#include "core/decoder.h"
#include "core/fields.h"
#include "counter_values.h"
#include "importer.h"

#define FIELD(name) ST_FIELD_TRACK_EVENT_##name

enum { MAX_COUNTERS = 8 };

struct counters {
  uint64_t type, track_uuid;
  double value;
  uint32_t count, double_count;
  uint8_t uuid_count, double_uuid_count;
  bool has_track, has_value, too_many;
  /* From here on, only what the counts say is defined. */
  uint64_t uuids[MAX_COUNTERS];
  uint64_t double_uuids[MAX_COUNTERS];
  double values[2 * MAX_COUNTERS];
};

static double bits_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void add_uuid(struct counters* c, uint64_t* uuids, uint8_t* count,
                     uint64_t value) {
  if (*count == MAX_COUNTERS)
    c->too_many = true;
  else
    uuids[(*count)++] = value;
}

static void add_value(struct counters* c, uint32_t field, uint64_t value) {
  switch (field) {
    case FIELD(EXTRA_COUNTER_TRACK_UUIDS):
      add_uuid(c, c->uuids, &c->uuid_count, value);
      break;
    case FIELD(EXTRA_DOUBLE_COUNTER_TRACK_UUIDS):
      add_uuid(c, c->double_uuids, &c->double_uuid_count, value);
      break;
    case FIELD(EXTRA_COUNTER_VALUES):
      if (c->count == MAX_COUNTERS)
        c->too_many = true;
      else
        c->values[c->count++] = (double)(int64_t)value;
      break;
    default:
      if (c->double_count == MAX_COUNTERS)
        c->too_many = true;
      else
        c->values[MAX_COUNTERS + c->double_count++] = bits_double(value);
  }
}

static void add_values(struct counters* c, struct st_field f) {
  if (!f.data) {
    add_value(c, f.number, f.value);
    return;
  }
  bool fixed = f.number == FIELD(EXTRA_DOUBLE_COUNTER_VALUES);
  const uint8_t *p = f.data, *end = f.data + f.size;
  uint64_t value;
  while (p && p < end) {
    p = st_get_element(p, end, fixed ? ST_WIRE_FIXED64 : ST_WIRE_VARINT,
                       &value);
    if (p)
      add_value(c, f.number, value);
  }
}

static void read_counters(struct counters* c, const uint8_t* data,
                          size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    switch (f.number) {
      case FIELD(TYPE):
        c->type = f.value;
        break;
      case FIELD(TRACK_UUID):
        c->track_uuid = f.value;
        c->has_track = true;
        break;
      case FIELD(COUNTER_VALUE):
        c->value = (double)(int64_t)f.value;
        c->has_value = true;
        break;
      case FIELD(DOUBLE_COUNTER_VALUE):
        c->value = bits_double(f.value);
        c->has_value = true;
        break;
      case FIELD(EXTRA_COUNTER_TRACK_UUIDS):
      case FIELD(EXTRA_DOUBLE_COUNTER_TRACK_UUIDS):
      case FIELD(EXTRA_COUNTER_VALUES):
      case FIELD(EXTRA_DOUBLE_COUNTER_VALUES):
        add_values(c, f);
        break;
      default:
        break;
    }
  }
}

/* Makes a counter's value absolute, and sets *number to its track's number.
 * Returns false if no earlier descriptor says that the track is a counter. */
static bool resolve(struct st_importer* m, uint32_t generation, uint64_t uuid,
                    double* value, uint32_t* number) {
  const struct st_track* track = st_tracks_find(&m->tracks, uuid);
  if (!track || !track->is_counter)
    return false;
  *number = (uint32_t)(track - m->tracks.tracks.data);
  if (track->multiplier)
    *value *= (double)(int64_t)track->multiplier;
  if (track->is_incremental)
    *value = st_sequence_sum(&m->sequences, generation, uuid, *value);
  return true;
}

static void use_defaults(struct counters* c, const struct st_defaults* d) {
  if (!c->has_track && d->track_uuid) {
    c->track_uuid = d->track_uuid;
    c->has_track = true;
  }
  if (!c->uuid_count && d->counter_count) {
    c->uuid_count = d->counter_count;
    memcpy(c->uuids, d->counter_uuids, sizeof c->uuids);
  }
  if (!c->double_uuid_count && d->double_count) {
    c->double_uuid_count = d->double_count;
    memcpy(c->double_uuids, d->double_uuids, sizeof c->double_uuids);
  }
}

/* Writes the values of the event's extra counters after `tail`.  Returns the
 * position after them; NULL if the event is invalid. */
static uint8_t* put_extra_values(struct st_importer* m, uint32_t generation,
                                 const struct counters* c, uint8_t* tail) {
  for (uint32_t i = 0; i < c->count + c->double_count; i++) {
    bool is_double = i >= c->count;
    uint32_t k = is_double ? i - c->count : i, number = 0;
    uint64_t uuid = is_double ? c->double_uuids[k] : c->uuids[k];
    double value = c->values[is_double ? MAX_COUNTERS + k : k];
    if (!resolve(m, generation, uuid, &value, &number))
      return NULL;
    tail = st_counter_value_put(tail, number, value);
  }
  return tail;
}

/* Writes the values that are needed to parse the event (counter_values.h).
 * Returns the position after them; NULL if the event is invalid. */
static uint8_t* put_values(struct st_importer* m, uint32_t generation,
                           struct counters* c, uint8_t* tail) {
  bool is_counter = c->type == ST_ENUM_TRACK_EVENT_TYPE_COUNTER;
  uint32_t count = c->count + c->double_count, number = 0;
  if (c->too_many || c->count > c->uuid_count ||
      c->double_count > c->double_uuid_count)
    return NULL;
  if (is_counter &&
      !(c->has_track && c->has_value &&
        resolve(m, generation, c->track_uuid, &c->value, &number)))
    return NULL;
  if (!is_counter && !count)
    return tail;
  *tail++ = (uint8_t)(count + is_counter);
  if (is_counter)
    tail = st_counter_value_put(tail, number, c->value);
  return put_extra_values(m, generation, c, tail);
}

void st_read_event(struct st_importer* m, uint32_t sequence, const int64_t* ts,
                   const uint8_t* data, size_t size) {
  struct counters c;
  uint32_t generation = m->sequences.sequences.data[sequence].generation;
  uint8_t tail[ST_MAX_COUNTER_VALUES];
  const uint8_t* end = NULL;
  m->counts.track_events++;
  memset(&c, 0, offsetof(struct counters, uuids));
  if (ts) {
    read_counters(&c, data, size);
    use_defaults(&c, &m->sequences.generations.data[generation].defaults);
    end = put_values(m, generation, &c, tail);
  }
  if (!end) {
    m->counts.tokenizer_errors++;
    return;
  }
  st_sorter_push_with(&m->sorter, ST_QUEUE_EVENTS, 0,
                      (struct st_event){.ts = *ts,
                                        .data = data,
                                        .tail = tail,
                                        .size = (uint32_t)size,
                                        .generation = generation},
                      (size_t)(end - tail));
}
