/* Ftrace event: the layout of the kernel's events, and their messages
 * FtraceEvent.
 *
 *   record of the kernel          id, pid, fields at the offsets of the layout
 *   FtraceEvent                   { timestamp, pid, event { fields } }
 *
 * Most events are small: they are written in place, with lengths of one byte.
 * The bounds of each string and number are checked before it is read from the
 * kernel's record.
 */
#pragma once

#include "core/message.h"
#include "probes/address_numbers.h"
#include "probes/ftrace_page.h"
#include "probes/print_filter.h"

enum { ST_COMM_SIZE = 16 };

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
  /* An address of the kernel.  Its number in the bundle is written, so that
   * the trace does not tell where the kernel is. */
  ST_FTRACE_ADDRESS,
  ST_FTRACE_KINDS
};

/* `number` is the field of the message; `offset` and `size` are bytes in the
 * record. */
struct st_ftrace_field {
  uint32_t number;
  uint16_t offset, size;
  uint8_t kind;
  /* If not NULL, the field is a message of its own, GenericFtraceEvent.Field,
   * which begins with these bytes. */
  const uint8_t* label;
  size_t label_size;
};

enum st_ftrace_form {
  ST_FTRACE_LEFT_OUT,
  ST_FTRACE_PLAIN,
  /* Has the fields prev_state, next_pid, next_prio and next_comm. */
  ST_FTRACE_COMPACT_SWITCH,
  /* Has the fields pid, target_cpu, prio and comm. */
  ST_FTRACE_COMPACT_WAKING,
  /* A plain event whose last field is the text that the table's filter must
   * allow. */
  ST_FTRACE_PRINT
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
  /* The message of the event begins with these bytes; may be NULL. */
  const uint8_t* prefix;
  size_t prefix_size;
};

/* The events by their ids. */
struct st_ftrace_table {
  struct st_ftrace_event* events;
  size_t count;
  struct st_print_filter print_filter;
};

/* Returns whether the kinds and sizes of an event's fields are valid.  A
 * compact event must have exactly the fields of its form. */
bool st_ftrace_event_is_valid(const struct st_ftrace_event* event);

/* Reads a number of 1, 2, 4 or 8 bytes.  Copies of constant size are single
 * instructions. */
static inline uint64_t st_ftrace_unsigned(const uint8_t* p, size_t size) {
  uint64_t value = 0;
  switch (size) {
    case 1:
      return *p;
    case 2:
      memcpy(&value, p, 2);
      return value;
    case 4:
      memcpy(&value, p, 4);
      return value;
    default:
      memcpy(&value, p, 8);
      return value;
  }
}

static inline int64_t st_ftrace_signed(const uint8_t* p, size_t size) {
  unsigned shift = 64 - 8 * (unsigned)size;
  return (int64_t)(st_ftrace_unsigned(p, size) << shift) >> shift;
}

/* Appends an event to a message FtraceEventBundle.  Its addresses are added to
 * those of the bundle. */
void st_ftrace_append_event(struct st_message* bundle,
                            struct st_address_numbers* addresses,
                            const struct st_ftrace_event* event,
                            const struct st_ftrace_record* record);
/* Returns whether the table's filter allows an event of the form
 * ST_FTRACE_PRINT. */
bool st_ftrace_is_allowed(const struct st_ftrace_table* table,
                          const struct st_ftrace_event* event,
                          const struct st_ftrace_record* record);
