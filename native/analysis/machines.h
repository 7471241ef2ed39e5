/* Machines: the host, and the machines whose data a relay has sent to it.
 *
 * A packet of another machine has the field machine_id.  Each machine has
 * clocks, CPUs, a kernel, processes and threads of its own: the same pid on two
 * machines is two processes.  Machine 0 is the host, whose packets have no
 * machine_id; the others are numbered in the order in which they are seen.
 *
 * The packets of a machine in one file of an archive are a source: it has
 * sequences, uuids of tracks and queues of events of its own.
 *
 *   file 0, host  ─> source 0 ─┬─ sequences, tracks, queues
 *   file 0, id 77 ─> source 1  │
 *   file 1, host  ─> source 2  └─ machine ─> clocks, processes, CPUs, kernel
 *
 * Limits: ST_MAX_MACHINES machines and ST_MAX_SOURCES sources.  Packets of
 * others are counted as unread.
 */
#pragma once

#include "clocks.h"
#include "cpus.h"
#include "disks.h"
#include "ftrace_events.h"

enum { ST_MAX_MACHINES = 256, ST_MAX_SOURCES = 1 << 16 };

struct st_machine {
  uint32_t id; /* The packets' machine_id. */
  /* The first two numbers of the kernel's version; 0 if it is unknown. */
  uint32_t kernel;
  int64_t page_size;
  int64_t last_ftrace_clock; /* The last snapshot of the clock of ftrace. */
  struct st_clocks clocks;
  struct st_cpus cpus;
  struct st_disks disks;
  struct st_kernel_kinds kinds;
};

struct st_source {
  uint32_t file, machine;
};

struct st_machines {
  struct st_storage* storage;
  ST_ARRAY(struct st_machine*) machines;
  struct st_map by_id; /* Value of machine_id to number + 1. */
  ST_ARRAY(struct st_source) sources;
  struct st_map by_place; /* File and machine to source + 1. */
};

/* Returns the machine's number, which is its row in the table machine; adds the
 * machine if it is new.  `id` is the packets' machine_id, 0 that of the host.
 * Returns ST_NO_ROW if there are too many machines. */
uint32_t st_machine_get(struct st_machines* s, uint32_t id);
/* Returns the number of the source of a file and a machine, which is added if
 * it is new; ST_NO_ROW if there are too many sources. */
uint32_t st_source_get(struct st_machines* s, uint32_t file, uint32_t machine);
void st_machines_free(struct st_machines* s);
