/* Adds everything of track events to the module. */
#include "bind/track_event/track_event.h"
#include "bind/common/bind.h"

static PyObject* in_event(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyBool_FromLong(st_events_underway != 0);
}

static PyMethodDef kFunctions[] = {
    {"in_event", in_event, METH_NOARGS,
     "in_event()\n--\n\n"
     "Whether the calling thread is recording an event: then it was called by "
     "the repr\nof an argument, say."},
    {NULL, NULL, 0, NULL}};

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
  if (add_event_template_type(module) < 0)
    return -1;
  if (add_flow_ids_type(module) < 0)
    return -1;
  if (add_message_hook_types(module) < 0)
    return -1;
  if (PyModule_AddFunctions(module, kFunctions) < 0)
    return -1;
  return add_track_event_api(module);
}
