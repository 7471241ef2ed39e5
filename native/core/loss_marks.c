#include "loss_marks.h"

#include <stdlib.h>

#include "clock.h"
#include "setters.h"
#include "trace_writer.h"

/* The largest size of the sequence's first packet together with one mark. */
enum { MARK_ROOM = 64 };

struct st_loss_marks {
  struct st_loss_marks* next;
  uint32_t target_buffer;
  uint32_t users;
  uint64_t owed; /* The number of losses that have no mark in the trace yet. */
  struct st_trace_writer writer;
};

static struct st_loss_marks** find(struct st_arbiter* a,
                                   uint32_t target_buffer) {
  struct st_loss_marks** m = &a->loss_marks;
  while (*m && (*m)->target_buffer != target_buffer)
    m = &(*m)->next;
  return m;
}

/* Keeps the writer in drop mode, in which it never waits for a chunk.  A wait
 * would hold the mutex, and another thread may need the mutex to free a
 * chunk. */
static void stay_in_drop_mode(struct st_loss_marks* m) {
  m->writer.dropping = m->writer.needs_prefix = true;
}

static void write_first_packet(struct st_loss_marks* m) {
  m->writer.dropping = false;
  st_trace_writer_append(&m->writer, NULL, 0);
  stay_in_drop_mode(m);
}

static void write_mark(struct st_loss_marks* m) {
  if (!m->owed || !st_trace_writer_ensure_room(&m->writer, MARK_ROOM))
    return;
  if (m->writer.first_packet)
    write_first_packet(m);
  uint8_t packet[32];
  uint8_t* p = st_trace_packet_put_timestamp(packet, st_boottime_ns());
  p = st_trace_packet_put_timestamp_clock_id(p, ST_CLOCK_BOOTTIME);
  struct st_iovec piece = {packet, (size_t)(p - packet)};
  if (st_trace_writer_append(&m->writer, &piece, 1))
    m->owed = 0;
  stay_in_drop_mode(m);
}

static bool add_buffer(struct st_arbiter* a, uint32_t target_buffer) {
  struct st_loss_marks* m = calloc(1, sizeof *m);
  if (!m || !st_trace_writer_init(&m->writer, a, target_buffer, ST_DROP)) {
    free(m);
    return false;
  }
  m->target_buffer = target_buffer;
  m->users = 1;
  stay_in_drop_mode(m);
  st_trace_writer_ensure_room(&m->writer, MARK_ROOM);
  m->next = a->loss_marks;
  a->loss_marks = m;
  return true;
}

static void close_writer(struct st_loss_marks* m) {
  write_mark(m);
  /* Without this line, st_trace_writer_destroy would report the mark as a new
   * loss. */
  m->writer.dropping = false;
  st_trace_writer_destroy(&m->writer);
}

static void add_mark(struct st_arbiter* a, uint32_t target_buffer) {
  pthread_mutex_lock(&a->loss_mutex);
  struct st_loss_marks* m = *find(a, target_buffer);
  if (m) {
    m->owed++;
    write_mark(m);
  }
  pthread_mutex_unlock(&a->loss_mutex);
}

static void free_all(struct st_arbiter* a) {
  while (a->loss_marks) {
    struct st_loss_marks* m = a->loss_marks;
    a->loss_marks = m->next;
    free(m);
  }
}

static const struct st_loss_marker kMarker = {add_mark, free_all};

bool st_loss_marks_open(struct st_arbiter* a, uint32_t target_buffer) {
  pthread_mutex_lock(&a->loss_mutex);
  struct st_loss_marks* m = *find(a, target_buffer);
  if (m)
    m->users++;
  bool ok = m || add_buffer(a, target_buffer);
  atomic_store(&a->loss_marker, &kMarker);
  pthread_mutex_unlock(&a->loss_mutex);
  return ok;
}

void st_loss_marks_close(struct st_arbiter* a, uint32_t target_buffer) {
  pthread_mutex_lock(&a->loss_mutex);
  struct st_loss_marks** link = find(a, target_buffer);
  struct st_loss_marks* m = *link;
  if (m && --m->users == 0) {
    *link = m->next;
    close_writer(m);
    free(m);
  }
  pthread_mutex_unlock(&a->loss_mutex);
}
