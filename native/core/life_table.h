/* Life table: objects that are traced from a begin to an end that are far
 * apart, by address: asyncio tasks, context managers.
 *
 *   created    the object's life begins
 *   steps      the object runs from time to time; after a step it is suspended
 *   looks      its lane, which writes the object's slices, is brought up to
 *              date; only if the life, and its last wait, are long enough to be
 *              seen
 *
 * A table limits the rates of new lives and of new lanes, unless `every` is
 * set.
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
};

/* The time between two looks at an object that never waits long. */
#define ST_LOOK_PERIOD_NS UINT64_C(1000000)

struct st_life {
  struct st_life* next;
  const void* key; /* The address of the object; only compared. */
  /* References of the caller, who releases them: to the object, to its lane
   * (NULL until the first look), and to what ends the current step (or NULL).
   */
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
};

/* Makes an empty table.  Returns false when out of memory. */
bool st_life_table_init(struct st_life_table* t, uint64_t lives_per_second,
                        bool every);
/* Returns the life of the object at an address; NULL if it has none. */
struct st_life* st_life_find(const struct st_life_table* t, const void* key);
/* Returns a new life.  Returns NULL when out of memory, or if nothing is
 * traced. */
struct st_life* st_life_add(struct st_life_table* t, const void* key,
                            uint64_t created);
/* Takes a life out of the table.  The caller frees it by free(). */
void st_life_take(struct st_life_table* t, struct st_life* life);
/* Takes all lives out of the table and returns them, linked by `next`.  The
 * table is then as before st_life_table_init(). */
struct st_life* st_life_take_all(struct st_life_table* t);

/* Whether the rates of new lives and of new lanes are below their limits.  Each
 * `true` counts as a new one.  After a quiet second, as many as are allowed in
 * a second are allowed at once. */
bool st_life_may_add(struct st_life_table* t, uint64_t now);
bool st_life_may_add_lane(struct st_life_table* t, uint64_t now);
/* Whether a lane that shows what lasts for `least` must be brought up to date
 * now.  `true` for a life without a lane counts as a new lane. */
bool st_life_needs_look(struct st_life_table* t, const struct st_life* life,
                        uint64_t least, uint64_t now);
