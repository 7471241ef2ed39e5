/* Internal header of the trace buffer, for its .c files:
 *
 *   trace_buffer.c          life cycle, memory, producers, stats, watermark
 *   trace_buffer_index.c    records and sequences in memory
 *   trace_buffer_write.c    chunks and patches in
 *   trace_buffer_evict.c    makes room for a record by evicting older ones
 *   trace_buffer_chain.c    packets with fragments in several records
 *   trace_buffer_read.c     packets out
 *   trace_buffer_carry.c    moves records that a reader cannot read yet
 *   trace_buffer_recover.c  clone; recovery of a dead process's file
 *   trace_buffer_exchange.c exchanges the contents of two buffers
 *
 * Positions.  `oldest` and `write` never decrease.  A position modulo the
 * ring's size is the offset in the ring.  [oldest, write) is in use, the rest
 * is free, so a wrap needs no special case:
 *
 *   ring     | C' | D' | free |  A  |  B  |pad|
 *                      ^write ^oldest
 *
 * Records have numbers in the order of their positions.  The records [head,
 * tail) have one entry each in a circular array.  The entry of a record without
 * unread data (padding, chunks read to their end) belongs to no sequence.  A
 * record whose number is not in [head, tail) was evicted.  The reader checks
 * that, because it releases the lock between two records.
 *
 * Memory: 36 bytes per record and 44 per sequence.  The newest 1024 sequences
 * without records are kept, to detect gaps in their chunk ids.
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
  ST_READ_SLACK = 64, /* The bytes after a returned packet that may be read. */
};

/* Flags of a record: enum st_chunk_flags in bits 0 to 2, and the following. */
enum {
  ST_RECORD_INCOMPLETE = 8,
  /* The record was recovered without its last packet. */
  ST_RECORD_ABORTED = 16,
  ST_RECORD_CORRUPTED = 32, /* A patch made the size at offset `last` wrong. */
  /* Padding: the record was read or moved elsewhere. */
  ST_RECORD_PADDING = 64,
  ST_RECORD_VIRGIN = 65,  /* Padding that never was a record. */
  ST_RECORD_UNREAD = 128, /* Counted in `unread`; not stored in the ring. */
  ST_RECORD_BROKEN = ST_RECORD_ABORTED | ST_RECORD_CORRUPTED,
};

/* The record header in the ring. */
struct st_record_header {
  uint32_t chunk_id;
  uint16_t producer_id;
  uint16_t writer_id;
  uint16_t fragments;
  uint16_t size; /* Size with this header, not rounded up. */
  uint8_t flags;
  char magic[3];
};
static_assert(sizeof(struct st_record_header) == ST_RECORD_HEADER, "format");
static_assert(offsetof(struct st_record_header, flags) == 12, "format");

/* The header in the first page of the mapping.
 *
 * The positions are for recovery from a file whose process has died. Only the
 * writing thread, which has the buffer's mutex, loads them while it lives, so
 * these loads are relaxed. After a process has died its memory has all stores
 * up to an instruction, and none after it; so only the compiler's order
 * matters, which the release stores and `before_store()` keep. */
struct st_ring_header {
  char magic[8];
  uint32_t version;
  uint32_t policy;
  uint64_t ring_size;
  _Atomic uint64_t oldest; /* Increased before the bytes are overwritten. */
  _Atomic uint64_t write;  /* Increased after the record is complete. */
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

/* The index entry of one record.  Offsets count from the record's payload. */
struct st_record {
  uint32_t block; /* Position in the ring, in units of 16 bytes. */
  uint32_t chunk_id;
  uint32_t sequence;
  /* Record numbers of the neighbours in the sequence.  `prev` of the first and
   * `next` of the last record are undefined. */
  uint32_t prev, next;
  uint32_t hash_next; /* Index + 1 of the next entry in the hash bucket. */
  uint16_t blocks;    /* Size in the ring, in units of 16 bytes. */
  uint16_t read;      /* Offset of the first unread byte. */
  uint16_t last;      /* Offset of the last unread fragment. */
  uint16_t end;       /* Offset of the end of all fragments. */
  uint8_t flags;
};
static_assert(sizeof(struct st_record) == 36, "limits");

enum {
  ST_SEQUENCE_BEGUN = 1,    /* The member last_id has a value. */
  ST_SEQUENCE_MAY_GROW = 2, /* The chunk with the id last_id was incomplete. */
};

struct st_sequence {
  uint32_t key;         /* The sequence: producer << 16 | writer. */
  uint32_t first, last; /* Numbers of its first and last record. */
  /* The number of records.  If it is 0, `first` and `last` are undefined. */
  uint32_t records;
  uint32_t last_id;   /* Newest removed chunk: read to its end, or evicted. */
  uint32_t loss;      /* Loss mask for the sequence's next packet. */
  uint32_t stalled;   /* The last read pass that skipped the sequence. */
  uint32_t hash_next; /* Index + 1 of the next in the bucket or free list. */
  /* Index + 1 of the neighbours in the list of empty sequences. */
  uint32_t older, newer;
  uint16_t last_end; /* The size of the content of chunk last_id. */
  uint8_t flags;
};
static_assert(sizeof(struct st_sequence) == 44, "limits");

struct st_index {
  struct st_record* records; /* At index number & (capacity - 1). */
  /* A hash table of (sequence, chunk id): index + 1 in `records`. */
  uint32_t* record_buckets;
  uint32_t capacity;   /* Capacity of both arrays: a power of two. */
  uint32_t head, tail; /* Record numbers, which wrap at 2^32. */

  struct st_sequence* sequences;
  uint32_t* sequence_buckets; /* Hash table of keys: index + 1. */
  uint32_t sequence_capacity; /* Capacity of both arrays: a power of two. */
  /* The number of entries ever used, with the entries in the free list. */
  uint32_t sequence_count;
  /* Index + 1 of the first entry of the free list. */
  uint32_t free_sequence;
  /* Index + 1 of both ends of the list of empty sequences. */
  uint32_t oldest_empty, newest_empty;
  uint32_t empty_count;

  uint64_t seed; /* Random, so a producer cannot aim at one bucket. */
};

/* The reader's state.  The reader accesses other members only under the
 * lock. */
struct st_reader {
  uint32_t pass;
  /* Record numbers of the cursor, and of the end of the pass. */
  uint32_t cursor, pass_end;
  /* Whether the pass reads the sequence of the record at `cursor`, up to that
   * record. */
  bool in_sequence;
  bool gap;         /* A chunk was missing since `in_sequence` was set. */
  uint8_t* scratch; /* A copy of one record's fragments. */
  const uint8_t* cur;
  const uint8_t* end;
  uint8_t* whole; /* A packet assembled from several fragments. */
  size_t whole_capacity;
  struct st_packet packet; /* Writer and loss of the packets in scratch. */
  /* Packets returned with a loss that the stats do not contain yet. */
  uint64_t flagged;
  uint64_t violations; /* Violations that the stats do not contain yet. */
};

struct st_trace_buffer {
  pthread_mutex_t mutex; /* This mutex guards all members above `reader`. */
  uint8_t* mapping;
  size_t mapping_size;
  struct st_ring_header* header;
  struct st_producer_identity* producers;
  uint8_t* ring;
  size_t size;
  enum st_fill_policy policy;
  bool full;    /* A DISCARD buffer that refuses all further records. */
  bool is_file; /* Whether each record, also padding, has a header. */
  /* Number of bytes after the write position that were records. */
  uint32_t pad_ahead;
  uint8_t* bounce; /* A temporary copy of a chunk. */
  struct st_index index;
  struct st_writer_stats writers;

  struct st_reader reader; /* Only the reading thread uses this state. */

  /* Written under the buffer's mutex, read without it to decide whether to read
   * the buffer now or later; relaxed, since reading takes the mutex. */
  _Atomic uint64_t unread;
  _Atomic uint64_t watermark;
  /* This mutex guards `eventfd`.  No other lock is taken under it. */
  pthread_mutex_t signal_mutex;
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

/* Returns whether a is before b, for ids and record numbers that wrap. */
static inline bool st_is_before(uint32_t a, uint32_t b) {
  return (int32_t)(a - b) < 0;
}

/* --- trace_buffer.c --- */

/* Allocates a buffer for a mapping, and takes ownership of the mapping, also on
 * failure.  Returns NULL when out of memory. */
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

/* Reserves `more` entries in the index.  Returns false when out of memory. */
bool st_index_reserve(struct st_index* x, uint32_t more);
/* Returns the entry of record number `tail`, and increments `tail`. The entry
 * must have been reserved. */
struct st_record* st_index_push(struct st_index* x);

/* Returns the sequence with this key, or NULL if there is none. */
struct st_sequence* st_sequence_find(struct st_index* x, uint32_t key);
/* Finds or adds a sequence.  Adding one may move all others in memory.  Returns
 * NULL when out of memory. */
struct st_sequence* st_sequence_add(struct st_index* x, uint32_t key);
static inline struct st_sequence* st_sequence_of(struct st_index* x,
                                                 const struct st_record* r) {
  return &x->sequences[r->sequence];
}

/* Finds the record of a chunk in its sequence. */
bool st_record_find(const struct st_index* x, const struct st_sequence* s,
                    uint32_t chunk_id, uint32_t* number);
/* Inserts the record into the sequence's list, by its chunk id.  Returns false
 * if it is so late that the search for its position would take too long. */
bool st_sequence_link(struct st_index* x, struct st_sequence* s,
                      uint32_t number);
/* Removes the record from its sequence; the entry stays.  A sequence without
 * records becomes an empty one, and the oldest empty one may be dropped. */
void st_sequence_unlink(struct st_index* x, uint32_t number);
/* Puts record `number`, which is in no sequence, into the place of record
 * `old`. */
void st_sequence_replace(struct st_index* x, uint32_t old, uint32_t number);
/* Notes a loss if chunks are missing between the sequence's last removed record
 * and its first record. */
void st_sequence_note_gap(const struct st_index* x, struct st_sequence* s);

/* --- trace_buffer_write.c --- */

/* Returns the payload of the fragment at p, or NULL if it is not complete
 * before `end`. *size is the size that the fragment claims, or 0. */
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

/* The result of a scan of fragments that no writer changes any more. */
struct st_fragments {
  uint32_t count; /* Number of valid fragments; they end at `end`. */
  uint32_t last;  /* Offset of the last valid fragment. */
  uint32_t end;
  /* ST_RECORD_CORRUPTED or ST_RECORD_ABORTED if there are fewer fragments than
   * the chunk's header states; else 0. */
  uint8_t broken;
};
struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count);
/* Finds the record's last unread fragment, or the fragment that a patch made
 * invalid. */
void st_find_last_fragment(const struct st_trace_buffer* b,
                           struct st_record* r);

/* Counts a record as unread if it has unread data. */
void st_count_unread(struct st_trace_buffer* b, struct st_record* r);
void st_uncount_unread(struct st_trace_buffer* b, struct st_record* r);

/* --- trace_buffer_chain.c --- */

enum st_consumer { ST_READER, ST_EVICTION };

/* A packet that begins in the last fragment of record `first`. */
struct st_chain {
  /* Numbers of the first and the last record that contain a fragment of the
   * packet. */
  uint32_t first, last;
  uint32_t first_id; /* The chunk id of record `first`. */
  uint32_t key;
  /* The reason why the packet can never be completed; 0 if it may be. */
  uint32_t loss;
};

/* Returns the end of the complete packets in the unread part of a record. */
static inline uint32_t st_whole_packets_end(const struct st_record* r) {
  bool stops = r->flags & (ST_CHUNK_LAST_CONTINUES | ST_RECORD_CORRUPTED);
  return stops ? r->last : r->end;
}

/* Returns whether the record is read to its end.  The bytes after a corrupted
 * fragment count as read. */
static inline bool st_nothing_left(const struct st_record* r) {
  return r->read >= r->end ||
         ((r->flags & ST_RECORD_CORRUPTED) && r->read >= r->last);
}

/* Returns whether the record's next fragment continues a packet of the previous
 * chunk. */
static inline bool st_is_continuation(const struct st_record* r) {
  return r->read == 0 && (r->flags & ST_CHUNK_FIRST_CONTINUES) &&
         !st_nothing_left(r);
}

/* Returns whether the packet of the record's next fragment continues in the
 * next chunk. */
static inline bool st_goes_on(const struct st_record* r) {
  return r->read == r->last && (r->flags & ST_CHUNK_LAST_CONTINUES) &&
         !(r->flags & ST_RECORD_CORRUPTED);
}

/* Finds the fragments of a packet that begins in the sequence's first record.
 * `gap`: chunks before it are missing.  Returns false if the packet is not
 * complete. */
bool st_find_chain(const struct st_index* x, const struct st_sequence* s,
                   bool gap, struct st_chain* chain);
/* Returns the offset of the end of the record's next fragment. */
uint32_t st_fragment_end(const struct st_trace_buffer* b,
                         const struct st_record* r);
/* Marks a record's payload as consumed up to `end`. */
void st_consume(struct st_trace_buffer* b, struct st_record* r, uint32_t end,
                enum st_consumer consumer);
/* Marks all fragments of a packet as consumed. */
void st_consume_chain(struct st_trace_buffer* b, const struct st_chain* chain,
                      enum st_consumer consumer);
/* Skips a fragment whose packet began in a missing chunk. */
void st_skip_orphan(struct st_trace_buffer* b, struct st_sequence* s,
                    struct st_record* r, enum st_consumer consumer);
/* Removes the first record from its sequence.  The bytes in the ring stay
 * valid, so that a ring in a file can be recovered if its trace could not be
 * written. */
void st_erase_first(struct st_trace_buffer* b, struct st_sequence* s);
/* Removes the first record from its sequence, and marks it in the ring as
 * padding, so that recovery skips it. */
void st_erase_first_in_ring(struct st_trace_buffer* b, struct st_sequence* s);

/* --- trace_buffer_evict.c --- */

/* Makes room for a record of `size` bytes, a multiple of 16, and returns its
 * address; evicts older records.  Returns NULL if a DISCARD buffer is full. */
uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size);
/* Adds the index entry of the record that was written at the write position,
 * and advances that position. */
struct st_record* st_append_record(struct st_trace_buffer* b, uint32_t size);
/* Evicts the oldest record of the buffer. */
void st_evict_oldest(struct st_trace_buffer* b);
/* Returns the bytes between the write position and the oldest record. */
static inline uint64_t st_free_bytes(const struct st_trace_buffer* b) {
  return b->size - (st_write_position(b) - st_oldest(b));
}
/* Returns the number of bytes between the write position and the end of the
 * ring, at most ST_MAX_RECORD + 1. */
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

/* Returns whether a reader drains the buffer to a file while writers fill
 * it. */
bool st_is_streamed(const struct st_trace_buffer* b);
/* Moves the oldest record to the write position, if the last pass of a stream's
 * reader had to skip it.  Called between two passes.  Returns false if the
 * record stays.  *carried counts the moved bytes. */
bool st_carry_oldest(struct st_trace_buffer* b, uint64_t* carried);
