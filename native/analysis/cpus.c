#include "cpus.h"

#include <stdlib.h>

struct st_cpu* st_cpu_get(struct st_cpus* c, uint32_t number) {
  while (c->cpus.size <= number)
    *ST_PUSH(&c->cpus) = (struct st_cpu){.arg_set = ST_NO_ROW};
  c->cpus.data[number].is_seen = true;
  return &c->cpus.data[number];
}

void st_cpus_finish(struct st_cpus* c, struct st_storage* s) {
  for (uint32_t i = 0; i < c->cpus.size; i++) {
    const struct st_cpu* cpu = &c->cpus.data[i];
    if (!cpu->is_seen)
      continue;
    struct st_cell cells[ST_CPU_COLUMNS] = {
        [ST_CPU_id] = st_int(st_ucpu(c, i)),
        [ST_CPU_ucpu] = st_int(st_ucpu(c, i)),
        [ST_CPU_cpu] = st_int(i),
        [ST_CPU_cluster_id] = st_int(cpu->cluster),
        [ST_CPU_processor] = st_text(cpu->processor),
        [ST_CPU_machine_id] = st_machine_cell(c->machine),
        [ST_CPU_arg_set_id] = st_row(cpu->arg_set),
    };
    if (cpu->has_capacity)
      cells[ST_CPU_capacity] = st_int(cpu->capacity);
    st_table_add(&s->tables[ST_CPU_TABLE], cells);
  }
}

void st_cpus_free(struct st_cpus* c) {
  free(c->cpus.data);
}
