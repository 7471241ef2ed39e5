#include "probes/time_owners.h"

uint64_t st_owned_run(struct st_time_owners* o, uint64_t ran, bool runs) {
  uint64_t all = o->kept_ns + ran;
  o->kept_ns = runs ? 0 : all;
  return runs ? all : 0;
}

uint32_t st_wait_owner(struct st_time_owners* o, uint32_t function, bool waits,
                       bool blocks) {
  if (waits || blocks)
    o->waited_in = function;
  return o->waited_in ? o->waited_in : function;
}
