#include "hooks/tracer.h"

struct st_hooks st_hooks = {.threshold_ns = ST_DEFAULT_THRESHOLD_NS};

void st_drop_error(void) {
  if (PyErr_Occurred())
    st_hooks.api->drop_own_error();
}
