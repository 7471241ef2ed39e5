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
#include "probes/ftrace_page.h"

/* The conversion of a field of a kernel event. */
enum st_ftrace_kind {
  ST_FTRACE_SIGNED,
  ST_FTRACE_UNSIGNED,
  /* A string in an array of bytes, up to a NUL. */
  ST_FTRACE_CHARS,
  /* A string up to a NUL or to the end of the record. */
  ST_FTRACE_REST,
  /* A string, or bytes, anywhere in the record.  The field (__data_loc) has the
   * offset in the low 16 bits, and the size in the high 16 bits. */
  ST_FTRACE_LOC_STRING,
  ST_FTRACE_LOC_BYTES,
  /* An array of unsigned numbers of 8 bytes. */
  ST_FTRACE_U64_ARRAY,
  /* A device number in the kernel's form, with 20 bits for the minor number. */
  ST_FTRACE_DEVICE,
  ST_FTRACE_KINDS
};

/* `number` is the field of the message; `offset` and `size` are bytes in the
 * record. */
struct st_ftrace_field {
  uint32_t number;
  uint16_t offset, size;
  uint8_t kind;
};

enum st_ftrace_form {
  ST_FTRACE_LEFT_OUT,
  ST_FTRACE_PLAIN,
  /* Has the fields prev_state, next_pid, next_prio and next_comm. */
  ST_FTRACE_COMPACT_SWITCH,
  /* Has the fields pid, target_cpu, prio and comm. */
  ST_FTRACE_COMPACT_WAKING
};

struct st_ftrace_event {
  /* The number of the event's field in FtraceEvent. */
  uint32_t number;
  uint8_t form;
  uint32_t field_count;
  const struct st_ftrace_field* fields;
  /* The message GenericEventDescriptor of an event that has no message of its
   * own; else NULL. */
  const uint8_t* descriptor;
  size_t descriptor_size;
};

/* The events by their ids. */
struct st_ftrace_table {
  struct st_ftrace_event* events;
  size_t count;
};

/* Returns whether the kinds and sizes of an event's fields are valid.  A
 * compact event must have exactly the fields of its form. */
bool st_ftrace_event_is_valid(const struct st_ftrace_event* event);

enum {
  ST_COMM_SIZE = 16,
  /* A bundle with more names ends after the current page. */
  ST_FTRACE_MANY_NAMES = 64,
  /* A bundle may exceed the limit above by the names of one page.  A page of 64
   * KiB has fewer compact events than the difference of the two limits. */
  ST_FTRACE_MAX_NAMES = 4096,
  ST_FTRACE_NAME_SLOTS = 256,
  ST_FTRACE_MAX_GENERIC = 64,
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

struct st_ftrace_bundle {
  const struct st_ftrace_table* table;
  struct st_message* root;
  /* The time of the last event of this CPU that was written. */
  uint64_t last_time;
  uint64_t switch_time, waking_time;
  struct st_packed columns[ST_COMPACT_COLUMNS];
  uint32_t name_count;
  char names[ST_FTRACE_MAX_NAMES][ST_COMM_SIZE];
  /* Hash of a name to the index + 1 of the last name with this hash. */
  uint16_t slots[ST_FTRACE_NAME_SLOTS];
  /* The ids of the generic events that this bundle describes.  If it has no
   * room, further generic events are left out. */
  uint16_t generic[ST_FTRACE_MAX_GENERIC];
  uint32_t generic_count;
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
