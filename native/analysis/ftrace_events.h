/* Kernel events of further kinds: memory, network, file systems, system calls.
 *
 * ftrace.c parses the events of threads, CPUs and interrupts itself, and passes
 * all others to st_parse_kernel_event.  Each kind becomes slices or counters,
 * with Perfetto's names and tracks.
 *
 * Counters of processes: the kernel names a thread.  Its process may be known
 * only later, so the track is chosen at the end of the trace:
 *
 *   event of a thread ─> counter without a track ─> st_finish_kernel_counters
 */
#pragma once

#include "args.h"
#include "messages.h"
#include "syscalls.h"
#include "tracks.h"

struct st_importer;

struct st_kernel_event {
  int64_t ts;
  uint32_t field, cpu, pid, generation;
  struct st_field message;
};

/* The most fields of an event's message. */
enum { ST_KERNEL_FIELDS = 32 };

/* An argument of a slice or counter. */
struct st_kernel_arg {
  const char* key;
  enum st_arg_type type;
  int64_t value;
};

/* A counter of a thread's process: the values of the track's text dimensions. */
struct st_thread_counter {
  uint32_t row, utid;
  uint8_t kind;
  const char *key, *metric;
};

/* The pages that the kernel moved to allocate contiguous memory. */
struct st_migration {
  uint64_t migrated, reclaimed, mapped;
};

/* What is known from earlier events of a machine. */
struct st_kernel_kinds {
  ST_ARRAY(struct st_thread_counter) counters;
  struct st_map mm_threads;  /* Id of an address space to utid + 1. */
  struct st_map in_write;    /* Threads in the system call write. */
  struct st_map devices[2];  /* Received, sent: name to number + 1. */
  ST_ARRAY(uint64_t) bytes;  /* Of the devices. */
  struct st_map tcp_streams; /* Address of a socket to number. */
  struct st_map migrations;  /* utid to number + 1. */
  ST_ARRAY(struct st_migration) migration_counts;
  uint32_t architecture; /* Of enum st_architecture. */
  uint64_t freed_packets;
  struct st_kernel_counts {
    uint64_t unknown_memory, negative_sizes, unknown_spaces, cut_writes;
  } counts;
};

/* Parses an event.  Returns false if its kind is not known. */
bool st_parse_kernel_event(struct st_importer* m,
                           const struct st_kernel_event* e);
/* Ends the thread's slice of the system call write before a slice of the
 * program begins or ends, because slices nest. */
void st_cut_write(struct st_importer* m, int64_t ts, uint32_t tid);
/* Sets the tracks of counters of processes of the machine in use. */
void st_finish_kernel_counters(struct st_importer* m);
void st_kernel_kinds_free(struct st_kernel_kinds* k);

/* These functions parse the events of an area, and return false if the event is
 * of another one: ftrace_memory.c, ftrace_network.c, ftrace_calls.c,
 * ftrace_counters.c. */
bool st_parse_memory_event(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f);
bool st_parse_network_event(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* f);
bool st_parse_call_event(struct st_importer* m, const struct st_kernel_event* e,
                         const struct st_field* f);
bool st_parse_counter_event(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* f);

/* These functions add slices and counters: ftrace_events.c.  `category` may be
 * NULL; dur is -1 for a begin, 0 for an instant. */
void st_kernel_begin(struct st_importer* m, int64_t ts, int64_t dur,
                     uint32_t track, const char* category, st_string name,
                     const struct st_kernel_arg* args, uint32_t count);
void st_kernel_end(struct st_importer* m, int64_t ts, uint32_t track,
                   const char* category, st_string name,
                   const struct st_kernel_arg* args, uint32_t count);
void st_kernel_counter(struct st_importer* m, int64_t ts,
                       const struct st_fixed_track* track, double value,
                       const struct st_kernel_arg* args, uint32_t count);
/* Returns the row of the thread's track. */
uint32_t st_kernel_thread_track(struct st_importer* m, uint32_t tid);
/* Returns a text that is made like printf's, of at most 255 bytes. */
__attribute__((format(printf, 2, 3))) st_string st_kernel_text(
    struct st_importer* m, const char* format, ...);
/* Returns a text: the field's, and `suffix`, of at most 255 bytes. */
st_string st_kernel_name(struct st_importer* m, struct st_field f,
                         const char* prefix, const char* suffix);
