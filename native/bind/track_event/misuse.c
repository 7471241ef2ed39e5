/* Wrong use of event calls: a track that is none, a timestamp of 1.5.
 *
 * Nobody looks at the arguments of a category that is off.  If a wrong one
 * raised as soon as somebody records, recording would change the program: a
 * mistake that slept for years would end it.  So it is counted, what is wrong
 * is left out, and the event is written with an annotation that says so.
 * Under `python -X dev` it raises, and says what to do. */
#include "bind/common/bind.h"
#include "bind/track_event/track_event.h"

static bool raises;

const char* const st_part_names[EVENT_PARTS] = {
    "track",     "flow", "terminating_flow",
    "timestamp", "args", "positional arguments"};

bool forgive(struct event_request* r, enum event_part part, PyObject* error,
             const char* format, ...) {
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

int st_bind_dev_mode(void) {
  PyObject* flags = PySys_GetObject("flags");
  PyObject* dev_mode = flags ? PyObject_GetAttrString(flags, "dev_mode") : NULL;
  int result = dev_mode ? dev_mode == Py_True : -1;
  Py_XDECREF(dev_mode);
  return result;
}

static PyObject* raise_on_event_misuse(PyObject* module, PyObject* value) {
  (void)module;
  int given = PyObject_IsTrue(value);
  if (given < 0)
    return NULL;
  bool before = raises;
  raises = given;
  return PyBool_FromLong(before);
}

static PyMethodDef kFunctions[] = {
    {"raise_on_event_misuse", raise_on_event_misuse, METH_O,
     "Whether wrong arguments of events raise; returns whether they did. "
     "-X dev sets it."},
    {NULL, NULL, 0, NULL}};

int add_misuse_functions(PyObject* module) {
  int dev_mode = st_bind_dev_mode();
  if (dev_mode < 0)
    return -1;
  raises = dev_mode;
  return PyModule_AddFunctions(module, kFunctions);
}
