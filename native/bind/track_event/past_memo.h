/* Past memos: the two packets of a slice that has ended, kept to be copied.
 *
 * A thread waits again and again for the same lock, held by the same thread.  Then
 * the packets of its waits differ by their times only:
 *
 *   size | timestamp, 4 bytes | BEGIN      size | timestamp, 4 bytes | END
 *          ^ BEGIN_TIME                           ^ end_time
 *
 * After a wait the processor's caches have little of our code and data.  A memo
 * takes two of their lines and a few instructions, where encoding the packets again
 * takes several lines and hundreds.
 *
 *   past_memo_find()   of the template and the values, by their addresses
 *   past_memo_write()  copies the packets, and sets the two times
 *   past_memo_keep()   after the packets were encoded as usual
 *
 * Limits: PAST_MEMOS a thread and session, direct-mapped; slices with repeated values
 * (track_event_api.h); 88 bytes, and times that are less than 0.27 s after the last
 * one.  A memo is valid for one epoch of its sequence, and holds strong references
 * to its values, which are of immutable types.
 *
 * Life cycle: allocated by the first past_memo_keep(), freed with the thread's
 * sequence.  Needs the GIL; runs no Python code.
 */
#pragma once

#include "bind/track_event/event_template_object.h"
#include "bind/track_event/track_event_api.h"
#include "core/track_event.h"
#include "core/wire.h"

enum {
  PAST_MEMOS_LOG2 = 4,
  PAST_MEMOS = 1 << PAST_MEMOS_LOG2,
  PAST_MEMO_BYTES = 88,
  PAST_MEMO_ROOM = PAST_MEMO_BYTES + 1,
  /* The position of the first timestamp: after a size of two bytes and a tag. */
  BEGIN_TIME = 3,
};

/* Two lines of the cache. */
struct past_memo {
  /* The number of the template; 0 if the memo is empty. */
  _Alignas(64) uint64_t number;
  PyObject* values[ST_PAST_VALUES];
  uint32_t epoch;
  uint8_t size, end_time;
  uint8_t bytes[PAST_MEMO_BYTES];
};

struct past_memos {
  struct past_memo memos[PAST_MEMOS];
};

static inline struct past_memo* past_memo_slot(
    struct past_memos* memos, uint64_t number,
    const struct st_past_slice* slice) {
  uint64_t mixed = number;
  for (int i = 0; i < ST_PAST_VALUES; i++)
    mixed ^= (uintptr_t)slice->values[i] >> (4 + i);
  return &memos->memos[mixed * 0x9E3779B97F4A7C15u >> (64 - PAST_MEMOS_LOG2)];
}

/* Whether the times of a slice that is written now take four bytes each. */
static inline bool past_memo_fits(const struct st_sequence* s,
                                  const struct st_past_slice* slice) {
  return slice->begin - s->last_timestamp <= ST_MAX_MESSAGE_SIZE &&
         slice->end - slice->begin <= ST_MAX_MESSAGE_SIZE;
}

/* Returns the memo of a slice, which does not begin before the last packet; NULL
 * if there is none. */
static inline const struct past_memo* past_memo_find(
    struct past_memos* memos, const struct st_sequence* s,
    const EventTemplateObject* template, const struct st_past_slice* slice) {
  uint64_t number = template->number;
  const struct past_memo* m = past_memo_slot(memos, number, slice);
  bool is_same = m->number == number && m->epoch == s->epoch;
  for (int i = 0; i < ST_PAST_VALUES; i++)
    is_same &= m->values[i] == slice->values[i];
  return LIKELY(is_same && past_memo_fits(s, slice)) ? m : NULL;
}

/* Writes the slice; there is room for PAST_MEMO_ROOM bytes and two packets. */
static inline void past_memo_write(struct st_sequence* s,
                                   const struct past_memo* m,
                                   const struct st_past_slice* slice) {
  uint8_t* p = s->writer.cur;
  memcpy(p, m->bytes, PAST_MEMO_BYTES);
  st_put_size_field(p + BEGIN_TIME,
                    (uint32_t)(slice->begin - s->last_timestamp));
  st_put_size_field(p + m->end_time, (uint32_t)(slice->end - slice->begin));
  s->last_timestamp = slice->end;
  s->events_written += 2;
  st_trace_writer_commit_two(&s->writer, p + m->size);
}

/* Keeps the packets of a slice that has fitted; they are from `begin` to the end of
 * what was written, that of the END starts at `end`.  Allocates the memos if they
 * are NULL. */
void past_memo_keep(struct past_memos** memos, const struct st_sequence* s,
                    const EventTemplateObject* template,
                    const struct st_past_slice* slice, const uint8_t* begin,
                    const uint8_t* end);

/* Frees memos, which may be NULL. */
void past_memos_free(struct past_memos* memos);
