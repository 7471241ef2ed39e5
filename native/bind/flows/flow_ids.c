#include "bind/flows/flow_ids.h"

#include <structmember.h>

#include "bind/common/types.h"
#include "bind/track_event/flow_stream.h"

enum { TO_SERVER = 1, TO_CLIENT = 2 };

static const uint64_t kMaxCount = UINT32_MAX;

PyTypeObject* st_flow_ids_type;

static bool is_anchor(const struct flow_direction* d,
                      const struct flow_message* m) {
  return m->txid && m->txid != d->anchor && !m->answer;
}

static void count(struct flow_direction* d, const struct flow_message* m) {
  if (is_anchor(d, m)) {
    *d = (struct flow_direction){m->txid, 0, true};
    return;
  }
  d->count++;
  if (d->count > kMaxCount)
    d->synchronised = false;
}

bool flow_ids_know(const FlowIdsObject* ids, const struct flow_message* m) {
  if (ids->disabled || !ids->to_server || m->kind == MESSAGE_CONTROL)
    return false;
  if (ids->numbered)
    return m->txid != 0;
  const struct flow_direction* d = &ids->directions[m->outgoing];
  return is_anchor(d, m) || (d->synchronised && d->count < kMaxCount);
}

static uint64_t numbered_id(const FlowIdsObject* ids,
                            const struct flow_message* m) {
  uint64_t request = flow_stream(ids->to_server, m->txid);
  return m->answer ? flow_stream(flow_mix(request), m->answer) : request;
}

/* Returns the flow id of a message that flow_ids_skip() has counted before. */
static uint64_t anchored_id(const FlowIdsObject* ids,
                            const struct flow_message* m) {
  const struct flow_direction* d = &ids->directions[m->outgoing];
  bool with_request = m->kind == MESSAGE_REPLY && !m->answer;
  bool to_server = (m->outgoing != ids->is_server) != with_request;
  uint64_t index = with_request ? m->txid << 32 : d->anchor << 32 | d->count;
  return flow_stream(to_server ? ids->to_server : ids->to_client, index);
}

void flow_ids_skip(FlowIdsObject* ids, const struct flow_message* m) {
  if (!ids->numbered)
    count(&ids->directions[m->outgoing], m);
}

uint64_t flow_ids_next(FlowIdsObject* ids, const struct flow_message* m) {
  bool known = flow_ids_know(ids, m);
  flow_ids_skip(ids, m);
  if (!known)
    return 0;
  uint64_t id = ids->numbered ? numbered_id(ids, m) : anchored_id(ids, m);
  return id ? id : 1;
}

static uint64_t sub_key(uint64_t key, uint64_t direction) {
  const uint64_t odd = 0x9E3779B97F4A7C15u;
  uint64_t sub = flow_mix(flow_mix(key + odd));
  sub = flow_mix(sub ^ flow_mix(direction + odd));
  return sub ? sub : 1;
}

/* Calls the Python function find_key() and stores the keys of the two
 * directions.  Returns false with an exception set on failure. */
static bool find_key(FlowIdsObject* ids) {
  PyObject* found = PyObject_CallNoArgs(ids->find_key);
  if (!found)
    return false;
  uint64_t key = PyLong_AsUnsignedLongLongMask(found);
  Py_DECREF(found);
  if (key == (uint64_t)-1 && PyErr_Occurred())
    return false;
  if (key) {
    ids->to_server = sub_key(key, TO_SERVER);
    ids->to_client = sub_key(key, TO_CLIENT);
  }
  return true;
}

/* Reads a message from a hook's arguments (outgoing, kind, txid, ...), in which
 * `answer` is at index `answer_at`.  Returns false with an exception set on
 * failure. */
static bool take_message(struct flow_message* m, PyObject* const* args,
                         Py_ssize_t count, Py_ssize_t answer_at) {
  if (count < 3) {
    PyErr_SetString(PyExc_TypeError, "a message has outgoing, kind and txid");
    return false;
  }
  m->outgoing = PyObject_IsTrue(args[0]) == 1;
  m->kind = (enum message_kind)PyLong_AsLong(args[1]);
  m->txid = PyLong_AsUnsignedLongLongMask(args[2]);
  m->answer =
      count > answer_at ? PyLong_AsUnsignedLongLongMask(args[answer_at]) : 0;
  return !PyErr_Occurred();
}

static PyObject* ids_next(PyObject* self, PyObject* const* args,
                          Py_ssize_t count) {
  FlowIdsObject* ids = (FlowIdsObject*)self;
  struct flow_message m;
  if (!take_message(&m, args, count, 4))
    return NULL;
  if (!ids->to_server && !ids->disabled && !find_key(ids))
    return NULL;
  return PyLong_FromUnsignedLongLong(flow_ids_next(ids, &m));
}

static PyObject* ids_skip(PyObject* self, PyObject* const* args,
                          Py_ssize_t given) {
  FlowIdsObject* ids = (FlowIdsObject*)self;
  struct flow_message m;
  if (!take_message(&m, args, given, 3))
    return NULL;
  flow_ids_skip(ids, &m);
  Py_RETURN_NONE;
}

static PyObject* ids_lost(PyObject* self, PyObject* outgoing) {
  struct flow_direction* d =
      &((FlowIdsObject*)self)->directions[PyObject_IsTrue(outgoing) == 1];
  d->synchronised = false;
  d->anchor = 0;
  Py_RETURN_NONE;
}

static PyObject* ids_disable(PyObject* self, PyObject* Py_UNUSED(unused)) {
  ((FlowIdsObject*)self)->disabled = true;
  Py_RETURN_NONE;
}

static int ids_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"key",          "owner",    "is_server",
                          "synchronised", "numbered", NULL};
  FlowIdsObject* ids = (FlowIdsObject*)self;
  PyObject *key, *owner = Py_None;
  int is_server = 0, synchronised = 1, numbered = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$ppp:FlowIds", names, &key,
                                   &owner, &is_server, &synchronised,
                                   &numbered))
    return -1;
  Py_XSETREF(ids->find_key, Py_NewRef(key));
  Py_XSETREF(ids->owner, Py_NewRef(owner));
  ids->is_server = is_server;
  ids->numbered = numbered;
  ids->used = !synchronised;
  ids->directions[0].synchronised = ids->directions[1].synchronised =
      synchronised;
  return 0;
}

static int ids_traverse(PyObject* self, visitproc visit, void* arg) {
  FlowIdsObject* ids = (FlowIdsObject*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(ids->owner);
  Py_VISIT(ids->find_key);
  return 0;
}

static int ids_clear(PyObject* self) {
  FlowIdsObject* ids = (FlowIdsObject*)self;
  Py_CLEAR(ids->owner);
  Py_CLEAR(ids->find_key);
  return 0;
}

static void ids_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  ids_clear(self);
  st_bind_free(self);
}

static PyMethodDef kMethods[] = {
    {"next", (PyCFunction)(void (*)(void))ids_next, METH_FASTCALL, NULL},
    {"skip", (PyCFunction)(void (*)(void))ids_skip, METH_FASTCALL, NULL},
    {"lost", ids_lost, METH_O, NULL},
    {"disable", ids_disable, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef kMembers[] = {
    {"owner", T_OBJECT, offsetof(FlowIdsObject, owner), READONLY, NULL},
    {"used", T_BOOL, offsetof(FlowIdsObject, used), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Counts the messages of one peer of a channel and computes their ids."},
    {Py_tp_init, ids_init},
    {Py_tp_traverse, ids_traverse},
    {Py_tp_clear, ids_clear},
    {Py_tp_dealloc, ids_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {0, NULL}};
static PyType_Spec kSpec =
    ST_BIND_SPEC("FlowIds", FlowIdsObject, Py_TPFLAGS_HAVE_GC, kSlots);

ST_BIND_PART(flow_ids) {
  return st_bind_keep_type(module, &kSpec, &st_flow_ids_type);
}
