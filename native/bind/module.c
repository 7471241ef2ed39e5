/* The extension module stretto._native: registers the types and functions of
 * the folders below.
 *
 *   probes/        files of the machine, stacks of other processes
 *   flows/         ids and hooks of flow tracing
 *   analysis/      traces as tables
 *   track_event/   categories, slices, tracks
 *   data_path/     trace buffers, shared memory, queues    protozero/  messages
 *   common/        arguments, text, errors
 *
 * A folder includes only headers of the folders below it.  The bindings only
 * convert arguments: a type wraps one struct of native/core, and each .c file
 * holds one Python type; it has a header if other files use the type.
 *
 * Life cycle: an object is complete when tp_new returns, and keeps strong
 * references to the objects whose core structs it points to:
 *
 *   TraceWriter -> Arbiter -> ProducerEndpointCore -> BufferTable
 *                          -> SendQueue <- IpcThread      ^
 *                                         Readback -------+
 *
 * So a struct from an accessor (st_bind_arbiter, ...) is valid as long as a
 * reference to its object is held.
 *
 * Threads: the GIL is released around everything that copies much data or may
 * wait, and never taken while a mutex of the core is held.  It guards the state
 * of the bindings: importing the module enables it in free-threaded builds.
 */
#include "bind/common/module_state.h"

/* The parts of the module, in the order in which they are added: later parts
 * use types that earlier parts have added. */
#define PARTS(X)                                                            \
  X(clock), X(descriptors), X(untraced_calls), X(pending_calls),            \
      X(kept_objects), X(marshalled_file), X(exempt), X(with_methods),      \
      X(delayed_call), X(buffer_table), X(readback), X(producer_endpoint),  \
      X(send_queue), X(ipc_thread), X(arbiter), X(trace_writer),            \
      X(request_key), X(trace_scan), X(trace_slices), X(byte_range),        \
      X(wire_fields), X(message_writer), X(message_field),                  \
      X(message_writer_class), X(message_decoder), X(decoded_field),        \
      X(typed_decoder), X(selector), X(tokenizer), X(message_filter),       \
      X(message_reader), X(argument_errors), X(process_track), X(track),    \
      X(own_tracks), X(thread_renames), X(flow), X(task_track), X(misuse),  \
      X(event_options), X(category_events), X(emit), X(slice), X(category), \
      X(event_template), X(instance_functions), X(forked_child),            \
      X(track_event_capsule), X(flow_ids), X(message_hook), X(importer),    \
      X(syscalls), X(machine_file), X(process_reader), X(ftrace_reader),    \
      X(syscall_waits), X(perf_sampler), X(python_sampler), X(symbols),     \
      X(native_stack)

#define DECLARATOR(name) st_bind_add_##name(PyObject*)
int PARTS(DECLARATOR);

#define POINTER(name) st_bind_add_##name
static int (*const kParts[])(PyObject*) = {PARTS(POINTER)};

/* Allows one interpreter per process: a process has one set of tracing
 * instances and threads, and these hold objects of one interpreter.  In other
 * interpreters `import stretto` falls back to the pure Python package, which
 * records nothing. */
static bool is_main_interpreter(void) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main())
    return true;
  PyErr_SetString(PyExc_ImportError,
                  "stretto._native works in the main interpreter only; trace "
                  "from there");
  return false;
}

/* Returns whether the interpreter has a GIL. Without a GIL the module raises
 * ImportError, and the pure Python package is used.  A free-threaded CPython
 * enables the GIL before it executes this module, unless -X gil=0 or
 * PYTHON_GIL=0 forbids that. */
static bool has_gil(void) {
  /* Only CPython 3.13 and later have the function sys._is_gil_enabled. */
  PyObject* function = Py_XNewRef(PySys_GetObject("_is_gil_enabled"));
  PyObject* enabled =
      function ? PyObject_CallNoArgs(function) : Py_NewRef(Py_True);
  Py_XDECREF(function);
  Py_XDECREF(enabled);
  if (enabled == Py_False)
    PyErr_SetString(PyExc_ImportError,
                    "stretto._native needs the GIL; start Python without "
                    "PYTHON_GIL=0 and -X gil=0");
  return enabled && enabled != Py_False;
}

static int module_exec(PyObject* module) {
  if (!is_main_interpreter() || !has_gil())
    return -1;
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; i++) {
    if (kParts[i](module) < 0)
      return -1;
  }
  return 0;
}

static PyModuleDef_Slot kSlots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._native",
    .m_doc = "The data path: trace buffers, shared memory, trace writers.",
    .m_size = sizeof(struct st_bind_state),
    .m_slots = kSlots,
};

PyMODINIT_FUNC PyInit__native(void) {
  return PyModuleDef_Init(&kModule);
}
