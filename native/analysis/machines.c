#include "machines.h"

#include <stdlib.h>

static uint32_t add_machine(struct st_machines* s, uint32_t id) {
  struct st_table* t = &s->storage->tables[ST_MACHINE_TABLE];
  uint32_t number = s->machines.size;
  ST_RESERVE(&s->machines, 1);
  struct st_machine* added = st_memory_new(sizeof *added);
  added->id = id;
  st_clocks_init(&added->clocks, number);
  added->cpus.machine = number;
  *ST_PUSH(&s->machines) = added;
  struct st_cell cells[ST_MACHINE_COLUMNS] = {
      [ST_MACHINE_id] = st_int(number),
      [ST_MACHINE_raw_id] = st_int(id),
  };
  return st_table_add(t, cells);
}

uint32_t st_machine_get(struct st_machines* s, uint32_t id) {
  uint32_t known = st_map_get(&s->by_id, id);
  if (known || s->machines.size == ST_MAX_MACHINES)
    return known ? known - 1 : ST_NO_ROW;
  uint32_t number = add_machine(s, id);
  *st_map_at(&s->by_id, id) = number + 1;
  return number;
}

uint32_t st_source_get(struct st_machines* s, uint32_t file, uint32_t machine) {
  uint64_t place = (uint64_t)file << 32 | machine;
  uint32_t known = st_map_get(&s->by_place, place);
  if (known || (machine && s->sources.size >= ST_MAX_SOURCES))
    return known ? known - 1 : ST_NO_ROW;
  *ST_PUSH(&s->sources) = (struct st_source){file, machine};
  *st_map_at(&s->by_place, place) = s->sources.size;
  return s->sources.size - 1;
}

void st_machines_free(struct st_machines* s) {
  for (uint32_t i = 0; i < s->machines.size; i++) {
    struct st_machine* machine = s->machines.data[i];
    st_clocks_free(&machine->clocks);
    st_cpus_free(&machine->cpus);
    st_disks_free(&machine->disks);
    st_kernel_kinds_free(&machine->kinds);
    free(machine);
  }
  free(s->machines.data);
  free(s->sources.data);
  st_map_free(&s->by_id);
  st_map_free(&s->by_place);
}
