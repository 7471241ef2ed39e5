/* Open begins: which BEGINs of begin() were written, by track and session.
 *
 * An END without its BEGIN closes whatever slice encloses it, so end() has to
 * know what became of the begin() it belongs to: written, lost, or called
 * before the session started.  Tracks are told apart by uuid, for two Track
 * objects of the same name are the same row.
 *
 *   buckets   by hash of uuid -> track -> track ...     chains
 *   track     uuid | per session: depth, was each BEGIN written?
 *
 * An entry lives from a track's first open BEGIN to its last END; entries of
 * sessions that are over go when a session starts.
 *
 * Limits.  Deeper than 64 the outermost BEGINs count as written.  Tracks above
 * ST_MAX_OPEN_TRACKS share one entry: their ENDs are written as often as their
 * BEGINs were, but a lost BEGIN may cost the END of another one of them.
 *
 * The caller locks.
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
  uint32_t generation; /* of the session; of another one: nothing is open */
  uint32_t depth;
  uint64_t bits; /* newest lowest: was it written? */
};

struct st_open_track {
  struct st_open_track* next;
  uint64_t uuid;
  struct st_open_begins sessions[ST_BEGIN_SESSIONS];
};

/* All zero is an empty one. */
struct st_open_tracks {
  struct st_open_track* buckets[ST_BEGIN_BUCKETS];
  struct st_open_track others; /* of the tracks above the limit */
  uint32_t count;
};

/* The sessions that run now, by slot: their generations, 0 where none runs. */
struct st_begin_sessions {
  uint32_t generations[ST_BEGIN_SESSIONS];
};

/* begin() was called on the track, for the sessions in mask; it was written to
 * those in `written`. */
void st_open_begins_push(struct st_open_tracks* t,
                         const struct st_begin_sessions* now, uint64_t uuid,
                         uint32_t mask, uint32_t written);
/* The sessions in mask that got the BEGIN which an end() of the track belongs
 * to. */
uint32_t st_open_begins_pop(struct st_open_tracks* t,
                            const struct st_begin_sessions* now, uint64_t uuid,
                            uint32_t mask);
/* Drops what only sessions know that are over. */
void st_open_begins_forget_ended(struct st_open_tracks* t,
                                 const struct st_begin_sessions* now);
