/* Open begins: which BEGINs of begin() were written, by track and session.
 *
 * An END without its BEGIN closes whatever slice encloses it, so end() has to
 * know what became of the begin() it belongs to: written, lost, or called
 * before the session started.  Tracks are told apart by uuid, for two Track
 * objects of the same name are the same row.
 *
 * A hash table of chains, only touched under the GIL.  An entry lives from a
 * track's first open BEGIN to its last END; entries of sessions that are over
 * go when a session starts.  Deeper than 64 the outermost BEGINs count as
 * written. */
#include "track_event.h"

enum { BUCKETS = 1024, MAX_ENTRIES = 65536 };

struct open_begins {
  uint32_t generation; /* of the slot's session */
  uint32_t depth;
  uint64_t bits; /* newest lowest: was it written? */
};

struct entry {
  struct entry* next;
  uint64_t uuid;
  struct open_begins slots[MAX_INSTANCES];
};

static struct entry* buckets[BUCKETS];
static uint32_t entry_count;

static struct entry** find(uint64_t uuid) {
  struct entry** at = &buckets[(uuid * 0x9E3779B97F4A7C15u) >> 54];
  while (*at && (*at)->uuid != uuid)
    at = &(*at)->next;
  return at;
}

static bool is_open(const struct entry* e) {
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (st_instances[slot].active && e->slots[slot].depth &&
        e->slots[slot].generation == st_instances[slot].generation)
      return true;
  }
  return false;
}

static void drop(struct entry** at) {
  struct entry* e = *at;
  *at = e->next;
  PyMem_RawFree(e);
  entry_count--;
}

static struct entry* find_or_make(uint64_t uuid) {
  struct entry** at = find(uuid);
  if (*at || entry_count == MAX_ENTRIES)
    return *at;
  *at = PyMem_RawCalloc(1, sizeof **at);
  if (!*at)
    return NULL;
  (*at)->uuid = uuid;
  entry_count++;
  return *at;
}

void open_begins_push(uint64_t uuid, uint32_t mask, uint32_t written) {
  struct entry* e = find_or_make(uuid);
  if (!e)
    return;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (!(mask & (1u << slot)))
      continue;
    struct open_begins* b = &e->slots[slot];
    if (b->generation != st_instances[slot].generation)
      *b = (struct open_begins){st_instances[slot].generation, 0, UINT64_MAX};
    b->depth++;
    b->bits = b->bits << 1 | ((written >> slot) & 1);
  }
}

uint32_t open_begins_pop(uint64_t uuid, uint32_t mask) {
  struct entry** at = find(uuid);
  if (!*at)
    return entry_count == MAX_ENTRIES ? mask : 0;
  uint32_t begun = 0;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    struct open_begins* b = &(*at)->slots[slot];
    if (!(mask & (1u << slot)) || !b->depth ||
        b->generation != st_instances[slot].generation)
      continue;
    begun |= (uint32_t)(b->bits & 1) << slot;
    b->bits = b->bits >> 1 | (uint64_t)1 << 63;
    b->depth--;
  }
  if (!is_open(*at))
    drop(at);
  return begun;
}

void open_begins_forget_ended_sessions(void) {
  for (int i = 0; i < BUCKETS; i++) {
    struct entry** at = &buckets[i];
    while (*at) {
      if (is_open(*at))
        at = &(*at)->next;
      else
        drop(at);
    }
  }
}
