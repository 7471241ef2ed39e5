#include "bind/track_event/open_begins.h"

#include "core/open_begins.h"
#include "core/session_slots.h"

_Static_assert((int)ST_BEGIN_SESSIONS == (int)MAX_INSTANCES, "one per slot");

static struct st_open_tracks open_tracks;

static struct st_begin_sessions running_sessions(void) {
  struct st_begin_sessions now = {{0}};
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    now.generations[slot] = st_slot_running(slot);
  return now;
}

void open_begins_push(uint64_t uuid, uint32_t mask, uint32_t written) {
  struct st_begin_sessions now = running_sessions();
  st_open_begins_push(&open_tracks, &now, uuid, mask, written);
}

uint32_t open_begins_pop(uint64_t uuid, uint32_t mask) {
  struct st_begin_sessions now = running_sessions();
  return st_open_begins_pop(&open_tracks, &now, uuid, mask);
}

void open_begins_forget_ended_sessions(void) {
  struct st_begin_sessions now = running_sessions();
  st_open_begins_forget_ended(&open_tracks, &now);
}
