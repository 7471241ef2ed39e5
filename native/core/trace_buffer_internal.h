/* Trace buffer, inside: what its files share.
 *
 *   trace_buffer.c          life cycle, memory, producers, stats, watermark
 *   trace_buffer_index.c    records and sequences in memory
 *   trace_buffer_write.c    chunks and patches in
 *   trace_buffer_evict.c    room for a record: what was there is given up
 *   trace_buffer_chain.c    packets whose fragments lie in several records
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
 * Limits: 36 bytes of memory for a record and 44 for a sequence.  A sequence
 * without records is kept to notice gaps, the newest 1024 of them.
 */
#pragma once

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
  ST_RECORD_ABORTED = 16,   /* recovered without its last packet */
  ST_RECORD_CORRUPTED = 32, /* a patch made a size wrong: `last` is where */
  ST_RECORD_PADDING = 64,   /* was read or moved elsewhere: to be skipped */
  ST_RECORD_VIRGIN = 65,    /* padding where nothing was written yet */
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
  uint16_t last;       /* where the last unread fragment begins */
  uint16_t end;        /* end of the fragments */
  uint8_t flags;
};
static_assert(sizeof(struct st_record) == 36, "limits");

enum {
  ST_SEQUENCE_BEGUN = 1,    /* last_id is valid */
  ST_SEQUENCE_MAY_GROW = 2, /* chunk last_id was incomplete */
};

struct st_sequence {
  uint32_t key;          /* producer << 16 | writer */
  uint32_t first, last;  /* record numbers, in chunk-id order */
  uint32_t records;      /* 0: first and last are undefined */
  uint32_t last_id;      /* newest chunk erased: read to its end, or evicted */
  uint32_t loss;         /* to be told with the next packet */
  uint32_t stalled;      /* the read pass in which it had to wait */
  uint32_t hash_next;    /* index + 1; also of free ones */
  uint32_t older, newer; /* among the empty ones; index + 1 */
  uint16_t last_end;     /* size of what chunk last_id held */
  uint8_t flags;
};
static_assert(sizeof(struct st_sequence) == 44, "limits");

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
  bool inside;      /* reads the sequence of the record at `cursor`, up to it */
  bool gap;         /* a chunk was missing since it is inside */
  uint8_t* scratch; /* one record's fragments, outside the ring */
  const uint8_t* cur;
  const uint8_t* end;
  uint8_t* whole; /* a packet put together of several fragments */
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
  bool full;    /* DISCARD: for ever */
  bool is_file; /* headers tell where the next record is, padding included */
  uint32_t pad_ahead; /* bytes behind the write position that were records */
  uint8_t* bounce;    /* a chunk that isn't where it belongs yet */
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
/* Notes if chunks are missing between the last one erased and the first one
 * that is there. */
void st_sequence_note_gap(const struct st_index* x, struct st_sequence* s);

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
  uint32_t count; /* good ones; up to `end` */
  uint32_t last;  /* where the last good one begins */
  uint32_t end;
  uint8_t broken; /* ST_RECORD_CORRUPTED or ST_RECORD_ABORTED: there were to be
                     more of them */
};
struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count);
/* Finds the last unread fragment, or the one that a patch broke. */
void st_find_last_fragment(const struct st_trace_buffer* b,
                           struct st_record* r);

/* Counts a record as unread if there is anything left in it. */
void st_count_unread(struct st_trace_buffer* b, struct st_record* r);
void st_uncount_unread(struct st_trace_buffer* b, struct st_record* r);

/* --- trace_buffer_chain.c --- */

enum st_consumer { ST_READER, ST_EVICTION };

/* A packet that begins in `first`'s last fragment. */
struct st_chain {
  uint32_t first, last; /* record numbers of those of its fragments there are */
  uint32_t first_id;    /* chunk id of the first one */
  uint32_t key;
  uint32_t loss; /* why it will never be whole; 0: it may be yet */
};

/* Where the whole packets of a record end that follow what was read. */
static inline uint32_t st_whole_packets_end(const struct st_record* r) {
  bool stops = r->flags & (ST_CHUNK_LAST_CONTINUES | ST_RECORD_CORRUPTED);
  return stops ? r->last : r->end;
}

/* Whether all of it was looked at; a corrupted rest can't be. */
static inline bool st_nothing_left(const struct st_record* r) {
  return r->read >= r->end ||
         ((r->flags & ST_RECORD_CORRUPTED) && r->read >= r->last);
}

/* Whether the next fragment goes on from another chunk. */
static inline bool st_is_continuation(const struct st_record* r) {
  return r->read == 0 && (r->flags & ST_CHUNK_FIRST_CONTINUES) &&
         !st_nothing_left(r);
}

/* Whether the next fragment goes on in another chunk. */
static inline bool st_goes_on(const struct st_record* r) {
  return r->read == r->last && (r->flags & ST_CHUNK_LAST_CONTINUES) &&
         !(r->flags & ST_RECORD_CORRUPTED);
}

/* Looks for the fragments of a packet that begins in the sequence's first
 * record.  `gap`: chunks before it are known to be missing.  False: it isn't
 * whole. */
bool st_find_chain(const struct st_index* x, const struct st_sequence* s,
                   bool gap, struct st_chain* chain);
/* Where the record's next fragment ends. */
uint32_t st_fragment_end(const struct st_trace_buffer* b,
                         const struct st_record* r);
/* Notes that a record's payload is consumed up to `end`. */
void st_consume(struct st_trace_buffer* b, struct st_record* r, uint32_t end,
                enum st_consumer consumer);
/* The same for all fragments of a chain. */
void st_consume_chain(struct st_trace_buffer* b, const struct st_chain* chain,
                      enum st_consumer consumer);
/* Skips a continuation of what nobody has. */
void st_skip_orphan(struct st_trace_buffer* b, struct st_sequence* s,
                    struct st_record* r, enum st_consumer consumer);
/* Takes the first record out of its sequence, whatever is left in it.  The
 * memory of the ring keeps a record that was read, so that a ring in a file can
 * be recovered when its trace couldn't be written. */
void st_erase_first(struct st_trace_buffer* b, struct st_sequence* s);
/* The same, and marks the memory as padding: recovery skips the record. */
void st_erase_first_in_ring(struct st_trace_buffer* b, struct st_sequence* s);

/* --- trace_buffer_evict.c --- */

/* Where a record of `size` bytes, a multiple of 16, has to go; older records
 * make room.  NULL: DISCARD is full. */
uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size);
/* The entry of the record that was written there; the position moves on. */
struct st_record* st_append_record(struct st_trace_buffer* b, uint32_t size);
/* Gives up the oldest record. */
void st_evict_oldest(struct st_trace_buffer* b);
/* Bytes between the write position and the oldest record. */
static inline uint64_t st_free_bytes(const struct st_trace_buffer* b) {
  return b->size - (st_write_position(b) - st_oldest(b));
}
/* Bytes before the end of the ring, ST_MAX_RECORD + 1 at most. */
static inline uint32_t st_bytes_to_end(const struct st_trace_buffer* b) {
  uint64_t left = b->size - st_write_position(b) % b->size;
  return left > ST_MAX_RECORD ? ST_MAX_RECORD + 1 : (uint32_t)left;
}
static inline uint8_t* st_write_place(const struct st_trace_buffer* b) {
  return b->ring + st_write_position(b) % b->size;
}
void st_write_header(uint8_t* place, uint32_t key, uint32_t chunk_id,
                     uint32_t fragments, uint32_t size, uint8_t flags);

/* --- trace_buffer_carry.c --- */

/* Whether a reader drains the buffer to a file as it fills. */
bool st_is_streamed(const struct st_trace_buffer* b);
/* Between two passes of a stream's reader: moves the oldest record to the
 * write position, if it waits for something.  False: it stays.  *carried: the
 * bytes that were moved so far. */
bool st_carry_oldest(struct st_trace_buffer* b, uint64_t* carried);
