/* Life table: finds the data of traced objects by their addresses.  These are
 * objects with a long lifetime, such as asyncio tasks and context managers.
 *
 *   life    the data of an object from its creation to its end
 *   step    a time in which the object runs; it is suspended between two steps
 *   lane    writes the object's slices; made at the first look
 *   look    an update of the lane before a step, if the life is long enough to
 *           be shown, and so is the last wait or the time since the last look
 *
 * A table limits the rates of new lives and of new lanes, and the time that
 * looks take, unless `every` is set.
 *
 * Threads: the caller guards the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_LANES_PER_SECOND = 250,
  ST_MIN_LIFE_BUCKETS = 256,
  /* Looks take at most one part in this number of the time, averaged over a
   * second; beyond that only long waits are looked at. */
  ST_LOOK_SHARE = 25,
};

/* The time between two looks at an object whose waits are all short.  A wait of
 * this length is long. */
#define ST_LOOK_PERIOD_NS UINT64_C(1000000)

struct st_life {
  struct st_life* next;
  const void* key; /* The address of the object; only compared. */
  /* References, which the caller owns: the object, its lane (NULL until the
   * first look), and an object that reports the end of the current step (or
   * NULL). */
  void *object, *lane, *step;
  /* `suspended` is the end of the last step, 0 before the first one. */
  uint64_t created, suspended, looked;
};

struct st_life_table {
  struct st_life** buckets; /* NULL while nothing is traced. */
  size_t size, count;
  uint64_t lives_per_second;
  bool every; /* Whether each object has a life and a lane. */
  /* The earliest times of the next life and of the next lane. */
  uint64_t next_life_ns, next_lane_ns;
  /* The earliest time of the next look that follows no long wait. */
  uint64_t next_look_ns;
  /* How many waits were not short, but got no look, as looks took too long. */
  uint64_t waits_left_out;
};

/* Makes an empty table.  Returns false when out of memory. */
bool st_life_table_init(struct st_life_table* t, uint64_t lives_per_second,
                        bool every);
/* Returns the life of the object at an address; NULL if it has none. */
struct st_life* st_life_find(const struct st_life_table* t, const void* key);
/* Adds a life and returns it.  Returns NULL when out of memory, or if nothing
 * is traced. */
struct st_life* st_life_add(struct st_life_table* t, const void* key,
                            uint64_t created);
/* Removes a life from the table.  The caller frees it with free(). */
void st_life_take(struct st_life_table* t, struct st_life* life);
/* Removes all lives from the table and returns them, linked by `next`.  The
 * table is then as before st_life_table_init(). */
struct st_life* st_life_take_all(struct st_life_table* t);

/* Return whether a new life, or a new lane, is within the limit of the rate at
 * the time `now`.  Each `true` counts as a new one.  After a second without new
 * ones, the number for a whole second is allowed at once. */
bool st_life_may_add(struct st_life_table* t, uint64_t now);
bool st_life_may_add_lane(struct st_life_table* t, uint64_t now);
/* Returns whether a life needs a look now.  Lives and waits shorter than
 * `least` ns are not shown.  `true` for a life without a lane counts as a new
 * lane. */
bool st_life_needs_look(struct st_life_table* t, const struct st_life* life,
                        uint64_t least, uint64_t now);
/* Notes that a look has taken the time from `begin` to `end`. */
void st_life_looked(struct st_life_table* t, uint64_t begin, uint64_t end);
