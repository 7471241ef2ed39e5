#include "bind/track_event/misuse.h"

#include "bind/common/dev_mode.h"
#include "bind/track_event/argument_errors.h"

static bool raises;

const char* const st_part_names[EVENT_PARTS] = {
    "track",     "flow", "terminating_flow",
    "timestamp", "args", "positional arguments"};

bool report_misuse(struct event_request* r, enum event_part part,
                   PyObject* error, const char* format, ...) {
  st_argument_errors++;
  if (raises) {
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(error, format, arguments);
    va_end(arguments);
    return false;
  }
  if (part != PART_NONE)
    r->left_out |= (uint8_t)(1u << part);
  return true;
}

static PyObject* raise_on_event_misuse(PyObject* Py_UNUSED(module),
                                       PyObject* value) {
  return st_bind_set_flag(&raises, value);
}

static PyMethodDef kFunctions[] = {
    {"raise_on_event_misuse", raise_on_event_misuse, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(misuse) {
  int dev_mode = st_bind_dev_mode();
  if (dev_mode < 0)
    return -1;
  raises = dev_mode;
  return PyModule_AddFunctions(module, kFunctions);
}
