/* Open begins: records which BEGINs of begin() were written, by track and
 * session.
 *
 * An END without its BEGIN closes the enclosing slice.  So end() needs the
 * outcome of its begin(): written, lost, or called before the session started.
 * Tracks are identified by uuid, because two Track objects of the same name are
 * the same row.
 *
 *   buckets   by hash of uuid -> track -> track ...     chains
 *   track     uuid | per session: depth, was each BEGIN written?
 *
 * An entry exists from a track's first open BEGIN to its last END. Entries of
 * ended sessions are removed when a session starts.
 *
 * Limits.  Beyond a depth of 64 the outermost BEGINs count as written.  Tracks
 * beyond ST_MAX_OPEN_TRACKS share one entry: as many of their ENDs are written
 * as BEGINs were, but a lost BEGIN may suppress the END of another of these
 * tracks.
 *
 * Threads: the caller has to lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  ST_BEGIN_SESSIONS = 8,
  ST_BEGIN_BUCKETS = 1024,
  ST_MAX_OPEN_TRACKS = 65536,
};

struct st_open_begins {
  /* The generation of the session that got these BEGINs.  If the slot now has
   * another generation, that session has ended, and these BEGINs no longer
   * count. */
  uint32_t generation;
  uint32_t depth;
  /* One bit for each open BEGIN, with the newest in bit 0: whether the BEGIN
   * was written. */
  uint64_t bits;
};

struct st_open_track {
  struct st_open_track* next;
  uint64_t uuid;
  struct st_open_begins sessions[ST_BEGIN_SESSIONS];
};

/* A table of the tracks that have open BEGINs.  A zeroed struct is an empty
 * table. */
struct st_open_tracks {
  struct st_open_track* buckets[ST_BEGIN_BUCKETS];
  /* The entry that all tracks beyond the limit of tracks share. */
  struct st_open_track others;
  uint32_t count;
};

/* For each slot the generation of the session that runs there; 0 if no session
 * runs there. */
struct st_begin_sessions {
  uint32_t generations[ST_BEGIN_SESSIONS];
};

/* Records a call of begin() on the track for the sessions in `mask`.  The event
 * BEGIN was written only to the sessions in `written`. */
void st_open_begins_push(struct st_open_tracks* t,
                         const struct st_begin_sessions* now, uint64_t uuid,
                         uint32_t mask, uint32_t written);
/* Removes the innermost open begin() call of the track.  Returns which of the
 * sessions in `mask` got the BEGIN of that call. */
uint32_t st_open_begins_pop(struct st_open_tracks* t,
                            const struct st_begin_sessions* now, uint64_t uuid,
                            uint32_t mask);
/* Removes the BEGINs of sessions that have ended. */
void st_open_begins_forget_ended(struct st_open_tracks* t,
                                 const struct st_begin_sessions* now);
