/* Tracks: TrackDescriptors become rows of `__intrinsic_track`.
 *
 * Descriptors are registered while the trace is read, and apply to the whole
 * trace.  A row is added when the first event of the track is parsed:
 *
 *   registered ─> resolved (which thread or process) ─> row
 *
 * Tracks with the same parent and the same name are merged: their overlapping
 * slices are put on as many rows as are needed.  Such rows form a group; each
 * row is bound to the uuid whose slice it held last.
 *
 * Limits: a chain of more than MAX_ANCESTORS parents, and a loop, are errors.
 */
#pragma once

#include "core/decoder.h"
#include "cpus.h"
#include "processes.h"

enum st_track_kind { ST_TRACK_PLAIN, ST_TRACK_THREAD, ST_TRACK_PROCESS };
enum st_scope { ST_SCOPE_GLOBAL, ST_SCOPE_PROCESS, ST_SCOPE_THREAD };
enum st_merge { ST_MERGE_BY_NAME, ST_MERGE_NONE, ST_MERGE_BY_KEY };

struct st_track {
  uint64_t uuid, parent;
  int64_t pid, tid;
  uint8_t kind, merge, child_ordering;
  bool is_counter, is_incremental, is_separate, has_rank, has_share_key;
  bool is_key_text;
  int64_t rank;
  uint64_t multiplier;
  st_string name, description, key, category, unit, builtin, share_key;
  int64_t key_number;
  /* Set when the track is resolved. */
  bool is_resolved, is_resolving, is_broken, is_root;
  uint8_t scope;
  uint32_t owner; /* utid or upid */
  /* Each plus 1; 0 until it is known. */
  uint32_t row, group, place;
};

struct st_track_group {
  struct st_track_place {
    uint32_t row, depth;
    uint64_t uuid; /* The track or cookie whose slice this row held last. */
  } * places;
  uint32_t size, capacity;
  uint32_t free_from; /* All places before this one are in use. */
  /* Of tracks without descriptors: cookie to place + 1, and the place of
   * instants + 1 (0 if there is none). */
  struct st_map by_cookie;
  uint32_t instants;
};

/* A track without a descriptor.  There is one row for each type and set of
 * dimensions.  The value of a dimension is `text` if this is not 0 or `is_text`
 * is set, else `number`.  The dimensions "utid" and "upid" are also stored in
 * the columns of these names. */
struct st_fixed_track {
  const char* type;
  st_string name;
  const char* unit;
  bool is_counter;
  struct st_dimension {
    const char* key;
    st_string text;
    int64_t number;
    bool is_text;
  } dimensions[3];
  const struct st_arg_list* source; /* The source arguments; may be NULL. */
};

struct st_tracks {
  struct st_storage* storage;
  struct st_arg_sets* arg_sets;
  struct st_processes* processes;
  struct st_cpus* cpus; /* Of the machine.  CPUs with tracks get rows. */
  ST_ARRAY(struct st_track) tracks;
  ST_ARRAY(struct st_track_group) groups;
  /* The numbers of the source and the machine of what is read or parsed: equal
   * uuids in several sources are different tracks. */
  uint32_t source, machine;
  uint32_t sequence;           /* The id of the sequence of the parsed event. */
  struct st_map by_uuid;       /* By source and uuid: index + 1. */
  struct st_map by_merge_key;  /* Group + 1. */
  struct st_map by_thread;     /* utid to row + 1, type thread_execution. */
  struct st_map by_dimensions; /* Type and dimensions to row + 1. */
  struct st_map with_first; /* By source and sequence: has its first packet. */
  struct st_arg_list arguments; /* Reused. */
  uint64_t errors;
};

/* How an event uses its track. */
enum st_use { ST_USE_BEGIN, ST_USE_END, ST_USE_INSTANT, ST_USE_COUNTER };

void st_tracks_init(struct st_tracks* t, struct st_storage* s,
                    struct st_arg_sets* sets, struct st_processes* p);
/* Reads a TrackDescriptor.  Returns false if it is invalid or contradicts an
 * earlier one. */
bool st_tracks_register(struct st_tracks* t, const uint8_t* data, size_t size);
/* Returns whether a ChromeThreadDescriptor says that the tid is one of a
 * sandbox, where several processes use the same. */
bool st_tid_is_sandboxed(struct st_field chrome_thread);
/* Returns a tid that is different in each process. */
static inline int64_t st_sandboxed_tid(int64_t tid, int64_t pid) {
  return (int64_t)((uint64_t)pid << 32 | (uint64_t)tid);
}
/* Returns the key of a track or sequence of the source. */
static inline uint64_t st_tracks_key(const struct st_tracks* t, uint64_t id) {
  return st_owned_key(id, t->source);
}
/* Returns a registered track; NULL if the uuid has no descriptor. */
struct st_track* st_tracks_find(struct st_tracks* t, uint64_t uuid);
/* Returns the track with its thread or process; adds a global one if the uuid
 * has no descriptor.  Returns NULL if its ancestors are invalid. */
struct st_track* st_tracks_resolve(struct st_tracks* t, uint64_t uuid);
/* Returns the row for an event on a resolved track. */
uint32_t st_tracks_row(struct st_tracks* t, uint64_t uuid, enum st_use use,
                       st_string event_name);
/* Returns the thread's row of type thread_execution. */
uint32_t st_tracks_thread_row(struct st_tracks* t, uint32_t utid);
/* Returns the row of a track without a descriptor. */
uint32_t st_tracks_fixed_row(struct st_tracks* t,
                             const struct st_fixed_track* f);
/* Returns the row for an asynchronous slice of such a track.  Slices that
 * overlap get different rows.  The begin and the end of a slice have the same
 * cookie. */
uint32_t st_tracks_async_row(struct st_tracks* t,
                             const struct st_fixed_track* f, uint64_t cookie,
                             enum st_use use);
/* The same, for slices that don't nest: a cookie has at most one open slice. */
uint32_t st_tracks_flat_row(struct st_tracks* t, const struct st_fixed_track* f,
                            uint64_t cookie, bool is_begin);
/* Returns the row for the instants of such a track. */
uint32_t st_tracks_instant_row(struct st_tracks* t,
                               const struct st_fixed_track* f);
/* Returns the name of a row. */
st_string st_tracks_row_name(const struct st_tracks* t, uint32_t row);
void st_tracks_free(struct st_tracks* t);
