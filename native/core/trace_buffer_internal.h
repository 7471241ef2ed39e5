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
 * whether a record was evicted, because it releases the lock between two
 * records.
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
  /* The number of bytes after a returned packet that the reader may access. */
  ST_READ_SLACK = 64,
};

/* The flags of a record: the bits of enum st_chunk_flags (0 to 2) and these. */
enum {
  ST_RECORD_INCOMPLETE = 8,
  /* The record was recovered, but its last packet is lost. */
  ST_RECORD_ABORTED = 16,
  /* A patch has made the size of the fragment at offset `last` invalid. */
  ST_RECORD_CORRUPTED = 32,
  /* The record is padding: it was read, or moved to another place. */
  ST_RECORD_PADDING = 64,
  /* The record is padding whose bytes never belonged to another record. */
  ST_RECORD_VIRGIN = 65,
  /* The record is counted in `unread`.  This flag is not stored in the ring. */
  ST_RECORD_UNREAD = 128,
  ST_RECORD_BROKEN = ST_RECORD_ABORTED | ST_RECORD_CORRUPTED,
};

/* The header of a record in the ring. */
struct st_record_header {
  uint32_t chunk_id;
  uint16_t producer_id;
  uint16_t writer_id;
  uint16_t fragments;
  uint16_t size; /* The size of the record with this header, not rounded up. */
  uint8_t flags;
  char magic[3];
};
static_assert(sizeof(struct st_record_header) == ST_RECORD_HEADER, "format");
static_assert(offsetof(struct st_record_header, flags) == 12, "format");

/* The header in the first page of the mapping.
 *
 * The positions are used to recover the buffer from the file of a dead process.
 * The memory of a dead process contains all stores up to an instruction, and
 * none after it. So the compiler must not reorder the stores.  The release
 * stores and before_store() prevent that.
 *
 * While the process lives, only the writing thread loads the positions.  It has
 * the buffer's mutex, so these loads are relaxed. */
struct st_ring_header {
  char magic[8];
  uint32_t version;
  uint32_t policy;
  uint64_t ring_size;
  /* The position of the oldest record.  It moves past a record before the
   * record's bytes are overwritten. */
  _Atomic uint64_t oldest;
  /* The write position.  It moves past a record when the record is complete. */
  _Atomic uint64_t write;
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

/* The index entry of a record.  Offsets count from the start of the record's
 * payload. */
struct st_record {
  uint32_t block; /* The record's position in the ring, in units of 16 bytes. */
  uint32_t chunk_id;
  uint32_t sequence;
  /* The numbers of the previous and the next record in the sequence.  `prev` of
   * the first record and `next` of the last one are undefined. */
  uint32_t prev, next;
  /* Index + 1 of the next record in the same hash bucket. */
  uint32_t hash_next;
  uint16_t blocks; /* The record's size in the ring, in units of 16 bytes. */
  uint16_t read;   /* The offset of the record's first unread byte. */
  uint16_t last;   /* The offset of the record's last unread fragment. */
  uint16_t end;    /* The offset of the end of the record's fragments. */
  uint8_t flags;
};
static_assert(sizeof(struct st_record) == 36, "limits");

enum {
  ST_SEQUENCE_BEGUN = 1, /* The sequence's member `last_id` has a value. */
  /* The removed chunk with the id `last_id` was incomplete, so it may be
   * committed again with more data. */
  ST_SEQUENCE_MAY_GROW = 2,
};

struct st_sequence {
  uint32_t key; /* The key of the sequence: producer << 16 | writer. */
  /* The numbers of the sequence's first and last record. */
  uint32_t first, last;
  /* The number of records of the sequence.  If it is 0, `first` and `last` are
   * undefined. */
  uint32_t records;
  /* The id of the sequence's newest removed chunk, which was read to its end or
   * evicted. */
  uint32_t last_id;
  uint32_t loss; /* The loss mask for the next packet of the sequence. */
  /* The number of the last read pass that skipped the sequence. */
  uint32_t stalled;
  /* Index + 1 of the next sequence in the same hash bucket, or in the free
   * list. */
  uint32_t hash_next;
  /* Index + 1 of the neighbours in the list of sequences without records. */
  uint32_t older, newer;
  /* The size of the content of the chunk with the id `last_id`. */
  uint16_t last_end;
  uint8_t flags;
};
static_assert(sizeof(struct st_sequence) == 44, "limits");

struct st_index {
  /* A circular array.  Record number n is at index n & (capacity - 1). */
  struct st_record* records;
  /* A hash table from (sequence, chunk id) to records: each entry is an index
   * in `records`, plus 1. */
  uint32_t* record_buckets;
  /* The capacity of `records` and `record_buckets`, a power of two. */
  uint32_t capacity;
  /* The number of the oldest record, and the number of the next record.  Record
   * numbers wrap at 2^32. */
  uint32_t head, tail;

  struct st_sequence* sequences;
  /* A hash table from keys to sequences: each entry is an index, plus 1. */
  uint32_t* sequence_buckets;
  /* The capacity of `sequences` and `sequence_buckets`, a power of two. */
  uint32_t sequence_capacity;
  /* The number of entries in `sequences` that were ever used, including those
   * in the free list. */
  uint32_t sequence_count;
  /* Index + 1 of the first sequence in the free list. */
  uint32_t free_sequence;
  /* Index + 1 of the first and the last sequence in the list of sequences
   * without records. */
  uint32_t oldest_empty, newest_empty;
  uint32_t empty_count;

  /* A random seed of the hashes, so that a producer cannot fill one bucket on
   * purpose. */
  uint64_t seed;
};

/* The state of the buffer's reader.  The reader accesses other members of the
 * buffer only under the lock. */
struct st_reader {
  uint32_t pass;
  /* Two record numbers: the reader's position, and the end of the read pass. */
  uint32_t cursor, pass_end;
  /* Whether the read pass has begun to read the sequence of the record at
   * `cursor`.  The pass reads this sequence up to that record. */
  bool in_sequence;
  /* Whether the reader has found that a chunk is missing, after it set
   * `in_sequence`. */
  bool gap;
  uint8_t* scratch; /* The reader's copy of the fragments of one record. */
  const uint8_t* cur;
  const uint8_t* end;
  /* The reader's copy of a packet that was assembled from several fragments. */
  uint8_t* whole;
  size_t whole_capacity;
  /* The writer and the loss mask of the packets in `scratch`. */
  struct st_packet packet;
  /* The number of packets that were returned with a loss and are not in the
   * stats yet. */
  uint64_t flagged;
  /* The number of violations that are not in the stats yet. */
  uint64_t violations;
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
  /* Whether the buffer, with policy DISCARD, refuses all further records. */
  bool full;
  /* Whether the ring is in a file, so that each record has a header, even
   * padding. */
  bool is_file;
  /* The number of bytes after the write position that once were records. */
  uint32_t pad_ahead;
  uint8_t* bounce; /* Memory for a temporary copy of a chunk. */
  struct st_index index;
  struct st_writer_stats writers;

  /* The state of the reader, which only the reading thread accesses. */
  struct st_reader reader;

  /* The number of unread bytes.  It is written under the buffer's mutex.  Loads
   * without the mutex are relaxed: they only decide whether to read the buffer
   * now or later, and reading takes the mutex. */
  _Atomic uint64_t unread;
  _Atomic uint64_t watermark;
  /* This mutex guards `eventfd`.  No other lock is taken while it is held. */
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

/* Returns whether a is before b.  Both are chunk ids or both are record
 * numbers, which wrap. */
static inline bool st_is_before(uint32_t a, uint32_t b) {
  return (int32_t)(a - b) < 0;
}

/* The functions of trace_buffer.c. */

/* Makes a buffer of a mapping.  The buffer owns the mapping; on failure the
 * mapping is unmapped.  Returns NULL when out of memory. */
struct st_trace_buffer* st_trace_buffer_adopt(void* mapping,
                                              size_t mapping_size, size_t size,
                                              enum st_fill_policy policy);

/* The functions of trace_buffer_index.c. */

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

/* Reserves `more` record entries in the index.  Returns false when out of
 * memory. */
bool st_index_reserve(struct st_index* x, uint32_t more);
/* Adds the entry of a new record to the index and returns it.  st_index_reserve
 * must have reserved the entry. */
struct st_record* st_index_push(struct st_index* x);

/* Returns the sequence with this key, or NULL if there is none. */
struct st_sequence* st_sequence_find(struct st_index* x, uint32_t key);
/* Returns the sequence with this key.  If there is none, adds it; that may move
 * all other sequences in memory.  Returns NULL when out of memory. */
struct st_sequence* st_sequence_add(struct st_index* x, uint32_t key);
static inline struct st_sequence* st_sequence_of(struct st_index* x,
                                                 const struct st_record* r) {
  return &x->sequences[r->sequence];
}

/* Finds the record of the chunk with this id in a sequence. */
bool st_record_find(const struct st_index* x, const struct st_sequence* s,
                    uint32_t chunk_id, uint32_t* number);
/* Inserts the record into the list of its sequence, by its chunk id.  Returns
 * false if the chunk is so late that the search for its position would take too
 * long. */
bool st_sequence_link(struct st_index* x, struct st_sequence* s,
                      uint32_t number);
/* Removes a record from its sequence, but not from the table of records.  A
 * sequence without records is added to the list of empty sequences; the oldest
 * of that list may be dropped. */
void st_sequence_unlink(struct st_index* x, uint32_t number);
/* Replaces record `old` in its sequence by record `number`, which is in no
 * sequence. */
void st_sequence_replace(struct st_index* x, uint32_t old, uint32_t number);
/* Notes a loss if chunks are missing between the record that was removed last
 * from the sequence and the record that is now its first. */
void st_sequence_note_gap(const struct st_index* x, struct st_sequence* s);

/* The functions of trace_buffer_write.c. */

/* Returns the payload of the fragment at p, or NULL if the fragment is not
 * complete before `end`.  *size is the size that the fragment claims, or 0. */
static inline const uint8_t* st_get_fragment(const uint8_t* p,
                                             const uint8_t* end,
                                             uint64_t* size) {
  *size = 0;
  if (p < end && *p < 0x80) {
    *size = *p++;
  } else if (end - p >= 2 && p[1] < 0x80) {
    *size = (*p & 0x7Fu) | (uint64_t)p[1] << 7;
    p += 2;
  } else {
    p = st_get_varint(p, end, size);
    if (!p)
      return NULL;
  }
  return *size <= (size_t)(end - p) ? p : NULL;
}

/* The valid fragments at the start of a payload that no writer changes any
 * more. */
struct st_fragments {
  uint32_t count; /* The number of valid fragments, which end at `end`. */
  uint32_t last;  /* The offset of the last valid fragment. */
  uint32_t end;
  /* 0 if there are as many valid fragments as the chunk's header states.  If
   * there are fewer, ST_RECORD_CORRUPTED or ST_RECORD_ABORTED. */
  uint8_t broken;
};
struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count);
/* Sets the member `last` of a record.  This is the last unread fragment, or the
 * fragment that a patch made invalid. */
void st_find_last_fragment(const struct st_trace_buffer* b,
                           struct st_record* r);

/* Adds a record to the count of unread bytes if it has unread data. */
void st_count_unread(struct st_trace_buffer* b, struct st_record* r);
void st_uncount_unread(struct st_trace_buffer* b, struct st_record* r);

/* The types and functions of trace_buffer_chain.c. */

enum st_consumer { ST_READER, ST_EVICTION };

/* A chain: the fragments of a packet that begins in the last fragment of record
 * `first`. */
struct st_chain {
  /* The numbers of the first and the last record that contain a fragment of the
   * packet. */
  uint32_t first, last;
  uint32_t first_id; /* The chunk id of the chain's first record. */
  uint32_t key;
  /* The loss because of which the packet can never be completed; 0 if it may be
   * completed. */
  uint32_t loss;
};

/* Returns the offset at which the last complete packet in the unread part of a
 * record ends. */
static inline uint32_t st_whole_packets_end(const struct st_record* r) {
  bool stops = r->flags & (ST_CHUNK_LAST_CONTINUES | ST_RECORD_CORRUPTED);
  return stops ? r->last : r->end;
}

/* Returns whether the record is read to its end.  Bytes after a corrupted
 * fragment count as read. */
static inline bool st_nothing_left(const struct st_record* r) {
  return r->read >= r->end ||
         ((r->flags & ST_RECORD_CORRUPTED) && r->read >= r->last);
}

/* Returns whether the next fragment of a record continues a packet of the
 * previous chunk. */
static inline bool st_is_continuation(const struct st_record* r) {
  return r->read == 0 && (r->flags & ST_CHUNK_FIRST_CONTINUES) &&
         !st_nothing_left(r);
}

/* Returns whether the packet in the record's next fragment is incomplete: it
 * continues in the next chunk. */
static inline bool st_goes_on(const struct st_record* r) {
  return r->read == r->last && (r->flags & ST_CHUNK_LAST_CONTINUES) &&
         !(r->flags & ST_RECORD_CORRUPTED);
}

/* Finds the fragments of a packet that begins in the first record of the
 * sequence.  `gap`: chunks before that record are missing.  Returns false if
 * the packet is not complete. */
bool st_find_chain(const struct st_index* x, const struct st_sequence* s,
                   bool gap, struct st_chain* chain);
/* Returns the offset at which a record's next fragment ends. */
uint32_t st_fragment_end(const struct st_trace_buffer* b,
                         const struct st_record* r);
/* Marks the payload of a record as consumed up to the offset `end`. */
void st_consume(struct st_trace_buffer* b, struct st_record* r, uint32_t end,
                enum st_consumer consumer);
/* Marks all fragments of a packet as consumed. */
void st_consume_chain(struct st_trace_buffer* b, const struct st_chain* chain,
                      enum st_consumer consumer);
/* Skips a fragment whose packet began in a missing chunk. */
void st_skip_orphan(struct st_trace_buffer* b, struct st_sequence* s,
                    struct st_record* r, enum st_consumer consumer);
/* Removes the first record from its sequence.  The record's bytes in the ring
 * stay valid.  So a ring in a file can still be recovered if the trace cannot
 * be written. */
void st_erase_first(struct st_trace_buffer* b, struct st_sequence* s);
/* Removes the first record from its sequence, and marks it in the ring as
 * padding, so that recovery skips it. */
void st_erase_first_in_ring(struct st_trace_buffer* b, struct st_sequence* s);

/* The functions of trace_buffer_evict.c. */

/* Makes room for a record of `size` bytes, a multiple of 16, by evicting older
 * records.  Returns the address of the room.  Returns NULL if a DISCARD buffer
 * is full. */
uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size);
/* Adds the index entry of the record that the caller wrote at the write
 * position.  Then advances the write position. */
struct st_record* st_append_record(struct st_trace_buffer* b, uint32_t size);
/* Evicts the oldest record of the buffer. */
void st_evict_oldest(struct st_trace_buffer* b);
/* Returns the number of free bytes, from the write position to the oldest
 * record. */
static inline uint64_t st_free_bytes(const struct st_trace_buffer* b) {
  return b->size - (st_write_position(b) - st_oldest(b));
}
/* Returns the number of bytes from the write position to the end of the ring,
 * but at most ST_MAX_RECORD + 1. */
static inline uint32_t st_bytes_to_end(const struct st_trace_buffer* b) {
  uint64_t left = b->size - st_write_position(b) % b->size;
  return left > ST_MAX_RECORD ? ST_MAX_RECORD + 1 : (uint32_t)left;
}
static inline uint8_t* st_write_place(const struct st_trace_buffer* b) {
  return b->ring + st_write_position(b) % b->size;
}
void st_write_header(uint8_t* place, uint32_t key, uint32_t chunk_id,
                     uint32_t fragments, uint32_t size, uint8_t flags);

/* The functions of trace_buffer_carry.c. */

/* Returns whether a reader drains the buffer to a file while writers fill
 * it. */
bool st_is_streamed(const struct st_trace_buffer* b);
/* Moves the oldest record to the write position if the last read pass of a
 * streamed buffer had to skip it.  Called between two passes.  Returns false if
 * the record was not moved.  *carried counts the moved bytes. */
bool st_carry_oldest(struct st_trace_buffer* b, uint64_t* carried);
