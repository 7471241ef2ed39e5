/* Clocks: converts timestamps between clocks by the snapshots of a trace.
 *
 * A snapshot holds the values of several clocks at one moment.  Snapshots of
 * the same clocks make a series:
 *
 *   clocks    BOOTTIME  64 of sequence 2
 *   values        1000               100
 *                 2000              1100
 *
 * A conversion finds the shortest path over series from the clock to the trace
 * clock, at most MAX_HOPS.  In each series it adds an offset: that of the last
 * snapshot that isn't later than the timestamp, or that of the first snapshot
 * if all are later.
 *
 * The clocks of another machine differ from the host's: packets RemoteClockSync
 * hold pairs of snapshots of both machines, and their difference is subtracted
 * from converted times (clock_sync.c).
 *
 * Clock ids from 64 to 127 belong to a sequence; they are stored as
 * sequence << 32 | file << 8 | id, with the number of the file in an archive.
 */
#pragma once

#include "core/decoder.h"
#include "storage.h"

enum {
  ST_CLOCK_MONOTONIC = 3,
  ST_CLOCK_BOOTTIME = 6,
  ST_FIRST_SEQUENCE_CLOCK = 64,
  ST_LAST_SEQUENCE_CLOCK = 127,
};

struct st_clock {
  uint64_t id;
  int64_t unit;        /* Nanoseconds per tick. */
  bool is_incremental; /* Timestamps are differences. */
  bool is_barred;      /* The clock went backwards: it isn't converted. */
  int64_t last;        /* The value at the last timestamp or snapshot. */
  ST_ARRAY(uint32_t) series;
  /* The path to the trace clock.  It is valid in the epoch `path_epoch`. */
  uint32_t path_epoch;
  uint32_t hops;
  struct st_hop {
    uint32_t series, from, to;
  } path[4];
};

struct st_clock_series {
  uint32_t width;
  uint32_t* clocks;
  ST_ARRAY(int64_t) values; /* `width` values per snapshot. */
};

/* The difference of a clock to the same clock of the host. */
struct st_clock_offset {
  uint64_t id;
  int64_t offset;
};

struct st_clocks {
  uint32_t machine;
  ST_ARRAY(struct st_clock) clocks;
  ST_ARRAY(struct st_clock_series) series;
  struct st_map by_id;      /* Clock number + 1. */
  struct st_map by_members; /* Hash of the members to series + 1. */
  uint64_t trace_clock;
  bool is_locked;     /* The trace clock has been used, so it can't change. */
  uint32_t epoch;     /* Counts series. */
  uint32_t snapshots; /* The number of snapshots, also of invalid ones. */
  uint32_t file;      /* The number of the file that is being read. */
  ST_ARRAY(struct st_clock_offset) offsets; /* Empty for the host. */
  int64_t offset;                           /* Of the trace clock. */
  /* The clocks of a snapshot that is being read. */
  ST_ARRAY(uint32_t) members;
  ST_ARRAY(int64_t) readings;
};

void st_clocks_init(struct st_clocks* c, uint32_t machine);
static inline uint64_t st_clock_id(const struct st_clocks* c, uint64_t id,
                                   uint32_t sequence) {
  bool own = id >= ST_FIRST_SEQUENCE_CLOCK && id <= ST_LAST_SEQUENCE_CLOCK;
  return own ? (uint64_t)sequence << 32 | (uint64_t)c->file << 8 | id : id;
}
/* Reads a ClockSnapshot, and adds rows to clock_snapshot.  Returns false if the
 * snapshot is invalid; no row was added then. */
bool st_clocks_add_snapshot(struct st_clocks* c, struct st_storage* s,
                            uint32_t sequence, const uint8_t* data,
                            size_t size);
/* The same for a snapshot that a relay has taken: no rows are added. */
bool st_clocks_add_quietly(struct st_clocks* c, uint32_t sequence,
                           struct st_field snapshot);
/* Reads a RemoteClockSync: clock_sync.c. */
void st_clocks_sync(struct st_clocks* c, struct st_field message);
/* Sets the difference of a clock to that of the host. */
void st_clocks_set_offset(struct st_clocks* c, uint64_t id, int64_t offset);
/* Adds a snapshot of two clocks: the values of `a` and `b` at the same moment.
 * The table clock_snapshot gets no rows. */
void st_clocks_add_pair(struct st_clocks* c, uint64_t a, int64_t a_value,
                        uint64_t b, int64_t b_value);
/* Returns a packet's timestamp in nanoseconds.  It is multiplied by the clock's
 * unit, and added to the clock's last value if the clock is incremental. */
int64_t st_clocks_absolute(struct st_clocks* c, uint64_t clock_id,
                           int64_t timestamp);
/* Converts to the trace clock.  Returns false if there is no path. */
bool st_clocks_convert(struct st_clocks* c, uint64_t clock_id,
                       int64_t timestamp, int64_t* out);
void st_clocks_free(struct st_clocks* c);
