#include "bind/track_event/flow.h"

#include <stdatomic.h>
#include <structmember.h>

#include "bind/common/bytes_builder.h"
#include "bind/common/types.h"
#include "bind/track_event/flow_stream.h"
#include "bind/track_event/process_track.h"
#include "core/wire.h"

PyTypeObject* st_flow_type;

typedef struct {
  PyObject_HEAD
  unsigned long long id;
} FlowObject;

static uint64_t next_flow_id(void) {
  /* The counter from which flow ids are made.  Each caller must get a different
   * number; the order does not matter. */
  static _Atomic uint64_t counter;
  uint64_t process = st_process_track_get()->uuid, id;
  do {
    id = flow_stream(process, atomic_fetch_add(&counter, 1) + 1);
  } while (id == 0);
  return id;
}

bool single_flow(PyObject* flow, uint64_t* id) {
  if (Py_TYPE(flow) == st_flow_type) {
    *id = ((FlowObject*)flow)->id;
    return true;
  }
  if (!PyLong_CheckExact(flow))
    return false;
  *id = PyLong_AsUnsignedLongLongMask(flow);
  return true;
}

static bool append_one(struct bytes_builder* out, uint32_t field,
                       PyObject* flow) {
  uint64_t id;
  if (!single_flow(flow, &id))
    id = PyLong_AsUnsignedLongLongMask(flow);
  uint8_t* p = PyErr_Occurred() ? NULL : builder_room(out, 16);
  if (p)
    builder_set_end(out, st_put_fixed64_field(p, field, id));
  return p != NULL;
}

static bool is_iterable(PyObject* value) {
  return Py_TYPE(value)->tp_iter || PySequence_Check(value);
}

/* Returns whether the value is a single flow.  If an int-like object of another
 * library is iterable, it is an array, which means several flows. */
static bool is_one(PyObject* value) {
  return Py_TYPE(value) == st_flow_type || PyLong_Check(value) ||
         (PyIndex_Check(value) && !is_iterable(value));
}

bool may_be_flows(PyObject* value) {
  if (is_one(value))
    return true;
  if (!PyList_Check(value) && !PyTuple_Check(value))
    return is_iterable(value) && !PyUnicode_Check(value);
  bool all = true;
  Py_BEGIN_CRITICAL_SECTION(value);
  for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(value); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, i);
    all = Py_TYPE(item) == st_flow_type || PyIndex_Check(item);
  }
  Py_END_CRITICAL_SECTION();
  return all;
}

bool append_flows(struct bytes_builder* out, uint32_t field, PyObject* flows) {
  if (is_one(flows))
    return append_one(out, field, flows);
  PyObject* all = PySequence_Tuple(flows);
  if (!all)
    return false;
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(all); i++)
    ok = append_one(out, field, PyTuple_GET_ITEM(all, i));
  Py_DECREF(all);
  return ok;
}

static PyObject* flow_new(PyTypeObject* type, PyObject* args,
                          PyObject* kwargs) {
  static char* names[] = {"id", NULL};
  PyObject* id = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!:Flow", names,
                                   &PyLong_Type, &id))
    return NULL;
  FlowObject* flow = (FlowObject*)type->tp_alloc(type, 0);
  if (!flow)
    return NULL;
  flow->id = id ? PyLong_AsUnsignedLongLong(id) : next_flow_id();
  if (PyErr_Occurred()) {
    Py_DECREF(flow);
    return NULL;
  }
  return (PyObject*)flow;
}

static PyObject* flow_repr(PyObject* self) {
  char text[48];
  snprintf(text, sizeof text, "stretto.Flow(0x%016llx)",
           ((FlowObject*)self)->id);
  return PyUnicode_FromString(text);
}

static PyObject* flow_reduce(PyObject* self, PyObject* Py_UNUSED(unused)) {
  return Py_BuildValue("O(K)", (PyObject*)Py_TYPE(self),
                       ((FlowObject*)self)->id);
}

/* flow_id(key, index): the id of the flow with number `index`, among the flows
 * that the key makes. */
static PyObject* flow_id(PyObject* Py_UNUSED(module), PyObject* const* args,
                         Py_ssize_t count) {
  if (count != 2 || !PyLong_Check(args[0]) || !PyLong_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "flow_id(key, index) takes two ints");
    return NULL;
  }
  uint64_t key = PyLong_AsUnsignedLongLongMask(args[0]);
  uint64_t index = PyLong_AsUnsignedLongLongMask(args[1]);
  return PyLong_FromUnsignedLongLong(flow_stream(key, index));
}

static PyMethodDef kFunctions[] = {
    {"flow_id", (PyCFunction)(void (*)(void))flow_id, METH_FASTCALL,
     "flow_id(key, index, /)\n--\n\nReturn the 64-bit id of the index-th "
     "message between two processes that share a key.\nEach index has a "
     "different id."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef kMembers[] = {{"id", T_ULONGLONG, offsetof(FlowObject, id),
                                  READONLY, "The 64-bit id in the trace."},
                                 {NULL, 0, 0, 0, NULL}};

static PyMethodDef kMethods[] = {{"__reduce__", flow_reduce, METH_NOARGS, NULL},
                                 {NULL, NULL, 0, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Flow(id=...)\n--\n\n"
     "An arrow between events: pass it as flow= to each of them, "
     "and as terminating_flow= to the last."},
    {Py_tp_new, flow_new},
    {Py_tp_dealloc, st_bind_free},
    {Py_tp_repr, flow_repr},
    {Py_tp_members, kMembers},
    {Py_tp_methods, kMethods},
    {0, NULL}};
static PyType_Spec kSpec = ST_BIND_SPEC("Flow", FlowObject, 0, kSlots);

ST_BIND_PART(flow) {
  if (st_bind_keep_type(module, &kSpec, &st_flow_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
