/* CPUs: the CPUs of a machine that a trace mentions, with the data of the packet
 * CpuInfo.  Each of them gets a row in the table cpu.  The row's id, the `ucpu`
 * of other tables, is unique in the trace; for the host it is the CPU's number:
 *
 *   ucpu = machine * ST_UCPUS + cpu
 */
#pragma once

#include "args.h"

enum { ST_MAX_CPUS = 1024, ST_UCPUS = 4096 };

struct st_cpu {
  bool is_seen, has_capacity;
  uint32_t cluster, capacity;
  st_string processor;
  uint32_t arg_set; /* ST_NO_ROW if none. */
};

struct st_cpus {
  uint32_t machine;
  ST_ARRAY(struct st_cpu) cpus;
};

/* Returns the CPU, and marks it as seen, so that it gets a row.  `number` must
 * be below ST_MAX_CPUS. */
struct st_cpu* st_cpu_get(struct st_cpus* c, uint32_t number);
/* Returns the id of a CPU that is unique in the trace. */
static inline uint32_t st_ucpu(const struct st_cpus* c, uint32_t number) {
  return c->machine * ST_UCPUS + number;
}
/* Adds the CPUs to the table cpu. */
void st_cpus_finish(struct st_cpus* c, struct st_storage* s);
void st_cpus_free(struct st_cpus* c);
