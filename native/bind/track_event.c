/* Adds everything of track events to the module. */
#include "track_event.h"
#include "bind.h"

int st_bind_add_track_event(PyObject* module) {
  thread_states_install_fork_handler();
  if (add_track_type(module) < 0)
    return -1;
  if (add_flow_type(module) < 0)
    return -1;
  if (add_slice_type(module) < 0)
    return -1;
  if (add_misuse_functions(module) < 0)
    return -1;
  if (add_category_type(module) < 0)
    return -1;
  if (add_instance_functions(module) < 0)
    return -1;
  return add_track_event_api(module);
}
