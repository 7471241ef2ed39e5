/* Trace buffer, inside: what its files share.
 *
 *   trace_buffer.c          life cycle, memory, producers, stats, watermark
 *   trace_buffer_index.c    records and sequences in memory
 *   trace_buffer_write.c    chunks and patches in, eviction
 *   trace_buffer_read.c     packets out
 *   trace_buffer_carry.c    what a stream's reader can't have yet
 *   trace_buffer_recover.c  clone, and what a dead process left in a file
 *   trace_buffer_exchange.c two buffers swap what they hold
 *
 * Positions.  `oldest` and `write` only ever grow; a position's place in the
 * ring is its remainder by the ring's size.  [oldest, write) is live, the rest
 * is free, so that nothing special happens at a wrap:
 *
 *   ring     | C' | D' | free |  A  |  B  |pad|
 *                      ^write ^oldest
 *
 * Records have numbers in the order of their positions.  The records [head,
 * tail) are described by a circular array, one entry for each; an entry whose
 * record has nothing more to say (padding, chunks read to their end) belongs
 * to no sequence.  A number that isn't in [head, tail) is gone: that is how
 * the reader, which lets go of the lock all the time, finds out.
 *
 * Limits: 36 bytes of memory for a record and 56 for a sequence.  A sequence
 * without records is kept to notice gaps, the newest 1024 of them.
 */
#ifndef STRETTO_CORE_TRACE_BUFFER_INTERNAL_H_
#define STRETTO_CORE_TRACE_BUFFER_INTERNAL_H_

#include "own_fd.h"
#include "shm_abi.h"
#include "trace_buffer.h"
#include "wire.h"

#define ST_NO_SEQUENCE UINT32_MAX
#define ST_RING_MAGIC "STRETTOB"

enum {
  ST_RING_VERSION = 2,
  ST_RING_PAGE = 4096,
  ST_RECORD_HEADER = 16,
  ST_RECORD_ALIGN = 16,
  ST_MAX_RECORD = 65535,
  ST_KEPT_EMPTY_SEQUENCES = 1024,
  ST_MAX_EMPTY_SEQUENCES = 1152,
  ST_READ_SLACK = 64, /* readable bytes behind every packet handed out */
};

/* Flags of a record: enum st_chunk_flags in bits 0 to 2, and these. */
enum {
  ST_RECORD_INCOMPLETE = 8,
  ST_RECORD_ABORTED = 16,   /* ends with the drop sentinel */
  ST_RECORD_CORRUPTED = 32, /* ends with a size that can't be */
  ST_RECORD_PADDING = 64,   /* or moved elsewhere: to be skipped */
  ST_RECORD_UNREAD = 128,   /* counted in `unread`; memory only */
  ST_RECORD_BROKEN = ST_RECORD_ABORTED | ST_RECORD_CORRUPTED,
};

/* As it lies in the ring. */
struct st_record_header {
  uint32_t chunk_id;
  uint16_t producer_id;
  uint16_t writer_id;
  uint16_t fragments;
  uint16_t size; /* header included, not rounded up */
  uint8_t flags;
  char magic[3];
};
static_assert(sizeof(struct st_record_header) == ST_RECORD_HEADER, "format");
static_assert(offsetof(struct st_record_header, flags) == 12, "format");

/* The first page of the mapping. */
struct st_ring_header {
  char magic[8];
  uint32_t version;
  uint32_t policy;
  uint64_t ring_size;
  _Atomic uint64_t oldest; /* moves before the bytes are overwritten */
  _Atomic uint64_t write;  /* moves after the record is whole */
  struct st_buffer_stats stats;
};
static_assert(sizeof(struct st_ring_header) <= ST_RING_PAGE, "format");

struct st_producer_identity {
  uint32_t uid;
  int32_t pid;
  uint32_t machine_id;
};

#define ST_RING_OFFSET \
  (ST_RING_PAGE + 65536u * sizeof(struct st_producer_identity))

/* What is known of one record.  Offsets count from its payload. */
struct st_record {
  uint32_t block; /* place in the ring, in units of 16 bytes */
  uint32_t chunk_id;
  uint32_t sequence;
  uint32_t prev, next; /* in the sequence; undefined at its ends */
  uint32_t hash_next;  /* slot + 1 */
  uint16_t blocks;     /* size in the ring, in units of 16 bytes */
  uint16_t read;       /* first byte not yet read */
  uint16_t last;       /* where the last fragment begins */
  uint16_t end;        /* end of the fragments */
  uint8_t flags;
};
static_assert(sizeof(struct st_record) == 36, "limits");

enum {
  ST_SEQUENCE_BEGUN = 1,     /* last_id is valid */
  ST_SEQUENCE_COMMITTED = 2, /* newest_id is valid */
  ST_SEQUENCE_GREW = 4,      /* chunk last_id was incomplete */
};

struct st_sequence {
  uint32_t key;          /* producer << 16 | writer */
  uint32_t first, last;  /* record numbers, in chunk-id order */
  uint32_t records;      /* 0: first and last are undefined */
  uint32_t last_id;      /* newest chunk read from, or evicted */
  uint32_t run_id;       /* chunks from this to last_id: none was missing */
  uint32_t newest_id;    /* newest chunk committed */
  uint32_t loss;         /* to be told with the next packet */
  uint32_t owed;         /* bytes of chunk last_id that are counted as
                            overwritten unless it comes again; if it GREW */
  uint32_t stalled;      /* the read pass in which it had to wait */
  uint32_t hash_next;    /* index + 1; also of free ones */
  uint32_t older, newer; /* among the empty ones; index + 1 */
  uint16_t consumed;     /* bytes read of chunk last_id, if it GREW */
  uint8_t flags;
};
static_assert(sizeof(struct st_sequence) == 56, "limits");

struct st_index {
  struct st_record* records; /* by number & (capacity - 1) */
  uint32_t* record_buckets;  /* by hash of sequence and chunk id: slot + 1 */
  uint32_t capacity;         /* of both, a power of two */
  uint32_t head, tail;       /* record numbers, they wrap */

  struct st_sequence* sequences;
  uint32_t* sequence_buckets; /* by hash of key: index + 1 */
  uint32_t sequence_capacity; /* of both, a power of two */
  uint32_t sequence_count;    /* ever used; those of free_sequence included */
  uint32_t free_sequence;     /* index + 1 */
  uint32_t oldest_empty, newest_empty; /* index + 1 */
  uint32_t empty_count;

  uint64_t seed; /* a producer can't aim at one bucket */
};

/* The reader's own state; only next to the lock does it look at the rest. */
struct st_reader {
  uint32_t pass;
  uint32_t cursor, pass_end; /* record numbers */
  uint8_t* scratch;          /* one record's fragments, outside the ring */
  const uint8_t* cur;
  const uint8_t* end;
  bool skip_fragment; /* the first one continues what nobody has */
  uint8_t* whole;     /* a packet put together of several fragments */
  size_t whole_capacity;
  struct st_packet packet; /* who wrote what is in scratch; its loss */
  uint64_t flagged;        /* packets returned with a loss, to be counted */
  uint64_t violations;     /* likewise */
};

struct st_trace_buffer {
  pthread_mutex_t mutex; /* guards everything but the last few members */
  uint8_t* mapping;
  size_t mapping_size;
  struct st_ring_header* header;
  struct st_producer_identity* producers;
  uint8_t* ring;
  size_t size;
  enum st_fill_policy policy;
  bool full;       /* DISCARD: for ever */
  uint8_t* bounce; /* a chunk that isn't where it belongs yet */
  struct st_index index;
  struct st_writer_stats writers;

  struct st_reader reader; /* one thread's */

  _Atomic uint64_t unread;
  _Atomic uint64_t watermark;
  pthread_mutex_t signal_mutex; /* guards eventfd; taken alone */
  struct st_own_fd eventfd;
};

static inline struct st_buffer_stats* st_stats(struct st_trace_buffer* b) {
  return &b->header->stats;
}

static inline uint64_t st_oldest(const struct st_trace_buffer* b) {
  return atomic_load_explicit(&b->header->oldest, memory_order_relaxed);
}

static inline uint64_t st_write_position(const struct st_trace_buffer* b) {
  return atomic_load_explicit(&b->header->write, memory_order_relaxed);
}

static inline uint32_t st_align_record(uint32_t size) {
  return (size + ST_RECORD_ALIGN - 1) & ~(uint32_t)(ST_RECORD_ALIGN - 1);
}

static inline uint32_t st_record_size(const struct st_record* r) {
  return (uint32_t)r->blocks * ST_RECORD_ALIGN;
}

static inline uint8_t* st_record_bytes(const struct st_trace_buffer* b,
                                       const struct st_record* r) {
  return b->ring + (size_t)r->block * ST_RECORD_ALIGN;
}

static inline uint8_t* st_record_payload(const struct st_trace_buffer* b,
                                         const struct st_record* r) {
  return st_record_bytes(b, r) + ST_RECORD_HEADER;
}

/* a before b, for ids and numbers that wrap. */
static inline bool st_is_before(uint32_t a, uint32_t b) {
  return (int32_t)(a - b) < 0;
}

/* --- trace_buffer.c --- */

/* Allocates everything but the mapping, which becomes the buffer's (also
 * when this fails).  NULL when out of memory. */
struct st_trace_buffer* st_trace_buffer_adopt(void* mapping,
                                              size_t mapping_size, size_t size,
                                              enum st_fill_policy policy);

/* --- trace_buffer_index.c --- */

bool st_index_init(struct st_index* x);
void st_index_destroy(struct st_index* x);
bool st_index_copy(struct st_index* to, const struct st_index* from);

static inline struct st_record* st_record_at(const struct st_index* x,
                                             uint32_t number) {
  return &x->records[number & (x->capacity - 1)];
}

static inline bool st_record_exists(const struct st_index* x, uint32_t number) {
  return number - x->head < x->tail - x->head;
}

/* Room for `more` records.  False: out of memory. */
bool st_index_reserve(struct st_index* x, uint32_t more);
/* The entry of record number `tail`, which is advanced; room is reserved. */
struct st_record* st_index_push(struct st_index* x);

/* NULL if it is unknown. */
struct st_sequence* st_sequence_find(struct st_index* x, uint32_t key);
/* Finds or adds; moves other sequences.  NULL when out of memory. */
struct st_sequence* st_sequence_add(struct st_index* x, uint32_t key);
static inline struct st_sequence* st_sequence_of(struct st_index* x,
                                                 const struct st_record* r) {
  return &x->sequences[r->sequence];
}

/* Finds a sequence's live record. */
bool st_record_find(const struct st_index* x, const struct st_sequence* s,
                    uint32_t chunk_id, uint32_t* number);
/* Puts the record into the sequence's list by its chunk id.  False: so far
 * out of order that looking for its place would take too long. */
bool st_sequence_link(struct st_index* x, struct st_sequence* s,
                      uint32_t number);
/* Takes it out; the entry stays.  If nothing of the sequence is left it is
 * kept as one of the empty ones, of which the oldest may be forgotten. */
void st_sequence_unlink(struct st_index* x, uint32_t number);
/* Lets record `number`, which is in no sequence, take the place of another. */
void st_sequence_replace(struct st_index* x, uint32_t old, uint32_t number);
/* Notes that chunk `id` was read from or evicted.  False: the chunks between
 * it and the last one are missing. */
bool st_sequence_pass(struct st_sequence* s, uint32_t chunk_id);

/* --- trace_buffer_write.c --- */

/* Payload of the fragment at p, NULL if it isn't whole before `end`; *size is
 * then what it claims, or 0. */
static inline const uint8_t* st_get_fragment(const uint8_t* p,
                                             const uint8_t* end,
                                             uint64_t* size) {
  *size = 0;
  if (p < end && *p < 0x80) {
    *size = *p++;
  } else {
    p = st_get_varint(p, end, size);
    if (!p)
      return NULL;
  }
  return *size <= (size_t)(end - p) ? p : NULL;
}

/* Fragments of a payload that nobody changes any more. */
struct st_fragments {
  uint32_t count;     /* good ones; up to `end` where no more can come */
  uint32_t last, end; /* as in st_record; trailing empty packets left out */
  uint8_t flags;      /* those given, corrected, and st_record's */
};
struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count, uint8_t flags);

/* Where a record of `size` bytes, a multiple of 16, has to go; older records
 * make room.  NULL: DISCARD is full. */
uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size);
/* The entry of the record that was written there; the position moves on. */
struct st_record* st_append_record(struct st_trace_buffer* b, uint32_t size);

/* Counts a record as unread if there is anything left in it. */
void st_count_unread(struct st_trace_buffer* b, struct st_record* r);
void st_uncount_unread(struct st_trace_buffer* b, struct st_record* r);

/* Gives up the oldest record. */
void st_evict_oldest(struct st_trace_buffer* b);

/* --- trace_buffer_carry.c --- */

/* Between two passes of a stream's reader: moves the oldest record to the
 * write position, if it waits for something.  False: it stays.  *carried: the
 * bytes that were moved so far. */
bool st_carry_oldest(struct st_trace_buffer* b, uint64_t* carried);

#endif /* STRETTO_CORE_TRACE_BUFFER_INTERNAL_H_ */
