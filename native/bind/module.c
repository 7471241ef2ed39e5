/* The extension module stretto._native: puts its types together. */
#include "bind/common/bind.h"

typedef int (*add_function)(PyObject* module);

static const add_function kParts[] = {
    st_bind_add_buffer_table,      st_bind_add_readback,
    st_bind_add_producer_endpoint, st_bind_add_send_queue,
    st_bind_add_ipc_thread,        st_bind_add_arbiter,
    st_bind_add_trace_writer,      st_bind_add_misc,
    st_bind_add_track_event,       st_bind_add_message_filter,
    st_bind_add_message_writer,    st_bind_add_message_decoder,
    st_bind_add_trace_slices,      st_bind_add_request_key,
};

/* A process has one set of tracing instances and threads, and they hold
 * objects of one interpreter.  In others `import stretto` gets the side that
 * does nothing. */
static bool is_main_interpreter(void) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main())
    return true;
  PyErr_SetString(PyExc_ImportError,
                  "stretto._native works in the main interpreter only; trace "
                  "from there");
  return false;
}

static int module_exec(PyObject* module) {
  if (!is_main_interpreter())
    return -1;
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; i++) {
    if (kParts[i](module) < 0)
      return -1;
  }
  return 0;
}

static PyModuleDef_Slot kSlots[] = {
    {Py_mod_exec, module_exec},
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

struct st_bind_state* st_bind_state(PyTypeObject* type) {
  return PyType_GetModuleState(type);
}

int st_bind_add_type(PyObject* module, PyType_Spec* spec) {
  PyObject* type = PyType_FromModuleAndSpec(module, spec, NULL);
  if (!type)
    return -1;
  int result = PyModule_AddType(module, (PyTypeObject*)type);
  Py_DECREF(type);
  return result;
}

bool st_bind_check(PyObject* object, destructor dealloc, const char* expected) {
  if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void*)dealloc)
    return true;
  PyErr_Format(PyExc_TypeError, "expected a %s, not %R", expected,
               (PyObject*)Py_TYPE(object));
  return false;
}
