/* Ftrace bundle: writes events of one CPU as a message FtraceEventBundle.
 *
 *   st_ftrace_bundle_init(b, table);              once
 *   st_ftrace_bundle_begin(b, cpu, lost_events, previous_end, &root);
 *   st_ftrace_bundle_add_page(b, data, size);     any number of pages
 *   st_ftrace_bundle_end(b);
 *
 * The table defines which events are written, and in which form.  Events
 * without an entry are left out.  Plain events are messages with a field for
 * each field of the kernel.  Compact events, sched_switch and sched_waking,
 * become columns: their times are differences, and the names of threads are
 * indexes in a table.
 *
 * The bounds of each string and number are checked before it is read from the
 * kernel's record.
 */
#pragma once

#include "core/message.h"
#include "core/packed.h"
#include "probes/ftrace_event.h"

enum {
  /* A bundle with more names ends after the current page. */
  ST_FTRACE_MANY_NAMES = 64,
  /* A bundle may exceed the limit above by the names of one page.  A page of 64
   * KiB has fewer compact events than the difference of the two limits. */
  ST_FTRACE_MAX_NAMES = 4096,
  ST_FTRACE_NAME_SLOTS = 256,
  ST_FTRACE_MAX_GENERIC = 64,
  ST_FTRACE_MAX_ADDRESSES = 1 << 14,
  ST_FTRACE_MAX_PARSE_ERRORS = 16,
};

/* The columns of CompactSched. */
enum st_compact_column {
  ST_SWITCH_TIMESTAMP,
  ST_SWITCH_PREV_STATE,
  ST_SWITCH_NEXT_PID,
  ST_SWITCH_NEXT_PRIO,
  ST_SWITCH_NEXT_COMM,
  ST_WAKING_TIMESTAMP,
  ST_WAKING_PID,
  ST_WAKING_TARGET_CPU,
  ST_WAKING_PRIO,
  ST_WAKING_COMM,
  ST_WAKING_FLAGS,
  ST_COMPACT_COLUMNS
};

/* Where the fields of a compact event end in its record. */
struct st_compact_layout {
  const struct st_ftrace_event* event;
  uint32_t ends[4];
  uint8_t shifts[4]; /* 64 - the bits of each number. */
  uint32_t size;     /* The least size of the record. */
};

struct st_ftrace_bundle {
  const struct st_ftrace_table* table;
  struct st_message* root;
  /* The time of the last event of this CPU that was written. */
  uint64_t last_time;
  uint64_t switch_time, waking_time;
  struct st_compact_layout layouts[2]; /* Of sched_switch and sched_waking. */
  struct st_packed columns[ST_COMPACT_COLUMNS];
  /* While a page is added: the end of each column. */
  uint8_t* at[ST_COMPACT_COLUMNS];
  uint32_t name_count;
  char names[ST_FTRACE_MAX_NAMES][ST_COMM_SIZE];
  /* The indexes + 1 of names, each at the slot of its hash or soon after. */
  uint16_t slots[ST_FTRACE_NAME_SLOTS];
  /* The ids of the generic events that this bundle describes.  If it has no
   * room, further generic events are left out. */
  uint16_t generic[ST_FTRACE_MAX_GENERIC];
  uint32_t generic_count;
  /* The kernel's addresses in the events of this bundle. */
  struct st_address_numbers addresses;
  uint32_t error_count;
  /* Parse errors since the bundle was initialised: a set of bits 1 << status. */
  uint32_t errors;
};

void st_ftrace_bundle_init(struct st_ftrace_bundle* b,
                           const struct st_ftrace_table* table);
void st_ftrace_bundle_free(struct st_ftrace_bundle* b);

/* Begins the bundle of a CPU.  `lost_events` tells whether the kernel has
 * overwritten events before it.  `previous_end` is the time of the last event
 * that was written for this CPU, or 0. */
void st_ftrace_bundle_begin(struct st_ftrace_bundle* b, uint32_t cpu,
                            bool lost_events, uint64_t previous_end,
                            struct st_message* root);
void st_ftrace_bundle_add_page(struct st_ftrace_bundle* b, const uint8_t* data,
                               size_t size);
/* Records an error of a read or of a page.  `status` is an FtraceParseStatus.
 * Only the first ST_FTRACE_MAX_PARSE_ERRORS of a bundle are written. */
void st_ftrace_bundle_add_error(struct st_ftrace_bundle* b, uint64_t time,
                                uint8_t status);
void st_ftrace_bundle_end(struct st_ftrace_bundle* b);
