#include "readback.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"

/* Field numbers of the TracePacket fields that the service writes. */
enum {
  FIELD_UID = 3,
  FIELD_SEQUENCE_ID = 10,
  FIELD_PREVIOUS_PACKET_DROPPED = 42,
  FIELD_PID = 79,
  FIELD_MACHINE_ID = 98,
  FIELD_LAST_RESERVED = 133,
};

enum {
  TRACE_PACKET_TAG = 0x0A, /* The encoded tag of the field Trace.packet. */
  /* The largest encoded size of the trusted fields, without the loss mask. */
  SUFFIX_SIZE = 48,
  LOSS_SIZE = 8,
  /* A packet of at most this size is copied as a block of exactly this size. */
  COPY_SIZE = 64,
  FIRST_SEQUENCE_ID = 2,
  GROWTH_STEP = 64 * 1024,
};

/* The encoded trusted fields of one packet sequence. */
struct trusted {
  uint32_t key; /* The key of the sequence: producer << 16 | writer. */
  uint32_t sequence_id;
  /* Index + 1 of the next sequence in the same hash bucket. */
  uint32_t hash_next;
  uint32_t uid;
  int32_t pid;
  uint32_t machine_id;
  /* The size of the encoded trusted fields; 0 if they are not encoded yet. */
  uint32_t suffix_size;
  uint8_t suffix[SUFFIX_SIZE];
};

struct st_readback {
  struct trusted* sequences;
  /* A hash table from keys to sequences: each entry is an index in `sequences`,
   * plus 1. */
  uint32_t* buckets;
  /* `capacity` is the capacity of both arrays: a power of two, or 0. */
  uint32_t count, capacity;
  uint32_t machine_id;
  uint32_t latest; /* The index of the sequence that was used last. */
  uint64_t packets, invalid_packets;
};

uint8_t* st_bytes_reserve(struct st_bytes* out, size_t n) {
  if (n <= out->capacity - out->size)
    return out->data + out->size;
  if (n > SIZE_MAX / 4 || out->size > SIZE_MAX / 4)
    return NULL;
  size_t capacity = 2 * out->capacity + n + GROWTH_STEP;
  uint8_t* data = realloc(out->data, capacity);
  if (!data)
    return NULL;
  out->data = data;
  out->capacity = capacity;
  return data + out->size;
}

struct st_readback* st_readback_create(uint32_t machine_id) {
  struct st_readback* r = calloc(1, sizeof *r);
  if (r)
    r->machine_id = machine_id;
  return r;
}

static bool copy_sequences(struct st_readback* to,
                           const struct st_readback* from) {
  if (!from->capacity)
    return true;
  to->sequences = malloc(from->capacity * sizeof *to->sequences);
  to->buckets = malloc(from->capacity * sizeof *to->buckets);
  if (!to->sequences || !to->buckets)
    return false;
  memcpy(to->sequences, from->sequences, from->count * sizeof *to->sequences);
  memcpy(to->buckets, from->buckets, from->capacity * sizeof *to->buckets);
  to->count = from->count;
  to->capacity = from->capacity;
  to->latest = from->latest;
  return true;
}

struct st_readback* st_readback_copy(const struct st_readback* r) {
  struct st_readback* copy = st_readback_create(r->machine_id);
  if (!copy)
    return NULL;
  copy->packets = r->packets;
  copy->invalid_packets = r->invalid_packets;
  if (copy_sequences(copy, r))
    return copy;
  st_readback_destroy(copy);
  return NULL;
}

void st_readback_destroy(struct st_readback* r) {
  if (!r)
    return;
  free(r->sequences);
  free(r->buckets);
  free(r);
}

/* Returns the hash bucket of a key, from the high bits of key times golden
 * ratio.  These are evenly spread, so a producer cannot choose many writer ids
 * that share a bucket. */
static uint32_t* bucket_of(struct st_readback* r, uint32_t key) {
  unsigned shift = (unsigned)__builtin_clz(r->capacity) + 1;
  return &r->buckets[key * 0x9E3779B1u >> shift];
}

static bool grow(struct st_readback* r) {
  uint32_t capacity = r->capacity ? 2 * r->capacity : 64;
  uint32_t* buckets = calloc(capacity, sizeof *buckets);
  struct trusted* sequences =
      buckets ? realloc(r->sequences, capacity * sizeof *sequences) : NULL;
  if (!sequences) {
    free(buckets);
    return false;
  }
  free(r->buckets);
  r->sequences = sequences;
  r->buckets = buckets;
  r->capacity = capacity;
  for (uint32_t i = 0; i < r->count; i++) {
    uint32_t* bucket = bucket_of(r, sequences[i].key);
    sequences[i].hash_next = *bucket;
    *bucket = i + 1;
  }
  return true;
}

static struct trusted* add_sequence(struct st_readback* r, uint32_t key) {
  if (r->count == r->capacity && !grow(r))
    return NULL;
  uint32_t* bucket = bucket_of(r, key);
  struct trusted* t = &r->sequences[r->count];
  memset(t, 0, sizeof *t);
  t->key = key;
  t->sequence_id = r->count + FIRST_SEQUENCE_ID;
  t->hash_next = *bucket;
  *bucket = ++r->count;
  return t;
}

/* Returns the sequence with this key.  Adds the sequence if there is none.
 * Returns NULL when out of memory. */
static struct trusted* find_sequence(struct st_readback* r, uint32_t key) {
  uint32_t i = r->capacity ? *bucket_of(r, key) : 0;
  while (i && r->sequences[i - 1].key != key)
    i = r->sequences[i - 1].hash_next;
  return i ? &r->sequences[i - 1] : add_sequence(r, key);
}

uint32_t st_readback_sequence_id(struct st_readback* r, uint16_t producer,
                                 uint16_t writer) {
  struct trusted* t = find_sequence(r, (uint32_t)producer << 16 | writer);
  return t ? t->sequence_id : 0;
}

uint64_t st_readback_invalid_packets(const struct st_readback* r) {
  return r->invalid_packets;
}

uint64_t st_readback_packets(const struct st_readback* r) {
  return r->packets;
}

/* A bitmap in which bit n is set if only the service may write field n. */
static const uint64_t reserved_fields[3] = {
    1ull << 3 | 1ull << 10 | 1ull << 33 | 1ull << 35 | 1ull << 36 | 1ull << 50,
    1ull << (69 - 64) | 1ull << (79 - 64) | 1ull << (98 - 64) |
        1ull << (124 - 64) | 1ull << (125 - 64),
    1ull << (133 - 128),
};

/* Returns whether a producer may write a field with this tag.  Field 0 and tags
 * above 32 bits are refused: some parsers might read such a tag as that of a
 * reserved field. */
static bool is_allowed(uint64_t tag) {
  uint64_t field = tag >> 3;
  if (!field || tag > UINT32_MAX)
    return false;
  return field > FIELD_LAST_RESERVED ||
         !(reserved_fields[field / 64] >> (field % 64) & 1);
}

static const uint8_t* skip_varint(const uint8_t* p, const uint8_t* end) {
  const uint8_t* limit = end - p > ST_MAX_VARINT ? p + ST_MAX_VARINT : end;
  while (p < limit)
    if (!(*p++ & 0x80))
      return p;
  return NULL;
}

static const uint8_t* skip_delimited(const uint8_t* p, const uint8_t* end) {
  uint64_t size;
  p = st_get_varint(p, end, &size);
  if (!p || size > ST_MAX_MESSAGE_SIZE || size > (size_t)(end - p))
    return NULL;
  return p + size;
}

static const uint8_t* skip_value(const uint8_t* p, const uint8_t* end,
                                 uint64_t wire_type) {
  switch (wire_type) {
    case ST_WIRE_VARINT:
      return skip_varint(p, end);
    case ST_WIRE_DELIMITED:
      return skip_delimited(p, end);
    case ST_WIRE_FIXED64:
      return end - p >= 8 ? p + 8 : NULL;
    case ST_WIRE_FIXED32:
      return end - p >= 4 ? p + 4 : NULL;
    default:
      return NULL;
  }
}

bool st_packet_is_valid(const uint8_t* data, size_t size) {
  const uint8_t *p = data, *end = data + size;
  while (p < end) {
    uint64_t tag = *p++;
    if (tag >= 0x80 && !(p = st_get_varint(p - 1, end, &tag)))
      return false;
    if (!is_allowed(tag))
      return false;
    p = skip_value(p, end, tag & 7);
    if (!p)
      return false;
  }
  return true;
}

/* Writes an int32 field.  A negative value takes ten bytes. */
static uint8_t* put_int32_field(uint8_t* p, uint32_t field, int32_t value) {
  return st_put_u64_field(p, field, (uint64_t)(int64_t)value);
}

static void make_suffix(struct trusted* t, const struct st_packet* packet,
                        uint32_t machine_id) {
  t->uid = packet->uid;
  t->pid = packet->pid;
  t->machine_id = packet->machine_id;
  if (packet->machine_id)
    machine_id = packet->machine_id;
  uint8_t* p = put_int32_field(t->suffix, FIELD_UID, (int32_t)t->uid);
  p = st_put_u64_field(p, FIELD_SEQUENCE_ID, t->sequence_id);
  if (t->pid > 0)
    p = put_int32_field(p, FIELD_PID, t->pid);
  if (machine_id)
    p = st_put_u64_field(p, FIELD_MACHINE_ID, machine_id);
  t->suffix_size = (uint32_t)(p - t->suffix);
}

static struct trusted* trusted_fields(struct st_readback* r,
                                      const struct st_packet* packet) {
  uint32_t key = (uint32_t)packet->producer_id << 16 | packet->writer_id;
  struct trusted* t =
      r->count ? &r->sequences[r->latest] : find_sequence(r, key);
  if (t && t->key != key)
    t = find_sequence(r, key);
  if (!t)
    return NULL;
  r->latest = (uint32_t)(t - r->sequences);
  if (!t->suffix_size || t->uid != packet->uid || t->pid != packet->pid ||
      t->machine_id != packet->machine_id)
    make_suffix(t, packet, r->machine_id);
  return t;
}

/* Appends a packet and its trusted fields.  Returns false when out of
 * memory. */
static bool append_packet(struct st_bytes* out, const struct trusted* t,
                          const struct st_packet* packet) {
  uint8_t loss[LOSS_SIZE];
  size_t loss_size = 0;
  if (packet->loss)
    loss_size = (size_t)(st_put_u64_field(loss, FIELD_PREVIOUS_PACKET_DROPPED,
                                          packet->loss) -
                         loss);
  size_t size = packet->size + t->suffix_size + loss_size;
  uint8_t* p = st_bytes_reserve(out, 1 + ST_MAX_VARINT + size + COPY_SIZE);
  if (!p)
    return false;
  *p++ = TRACE_PACKET_TAG;
  p = st_put_varint(p, size);
  /* memcpy with a constant size is much faster.  The bytes that it copies after
   * the packet's end are overwritten later, or stay after the end of the
   * output. */
  if (packet->size <= COPY_SIZE)
    memcpy(p, packet->data, COPY_SIZE);
  else
    memcpy(p, packet->data, packet->size);
  p += packet->size;
  memcpy(p, t->suffix, SUFFIX_SIZE);
  p += t->suffix_size;
  if (loss_size)
    memcpy(p, loss, loss_size);
  out->size = (size_t)(p + loss_size - out->data);
  return true;
}

bool st_readback_run(struct st_readback* r, struct st_trace_buffer* buffer,
                     struct st_bytes* out, size_t limit) {
  size_t start = out->size;
  struct st_packet packet;
  while (out->size - start < limit) {
    if (!st_trace_buffer_read_packet(buffer, &packet))
      return false;
    struct trusted* t = st_packet_is_valid(packet.data, packet.size)
                            ? trusted_fields(r, &packet)
                            : NULL;
    if (t && append_packet(out, t, &packet))
      r->packets++;
    else
      r->invalid_packets++;
  }
  return true;
}
