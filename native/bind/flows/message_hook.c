/* The Python types MessageHook and MessageTemplates: the native part of the
 * message tracer, which handles most messages without running Python.
 *
 *   hook(channel, stamp, method, kind, txid, size, handles, answer, data)
 *   hook(channel, method, kind, txid, size, handles, answer, data)
 *
 * are the hooks `sent` and `received` of stretto.base.rpc_hooks.  They are
 * native because they run cold: between two messages of a conversation the
 * processor's caches are lost, and a few hundred lines of Python would be most
 * of the cost that tracing adds to a call.
 *
 * A hook wraps the Python function that can handle every message
 * (stretto.flows.tracer).  The hook handles a message itself if
 *   - channel.state.ids is a FlowIds of the same owner, and
 *   - this thread is not recording an event.
 * It only counts the message if the method's switch (method.switch.enabled) and
 * the transport's category are both off.  It also records an event if
 *   - the id of the message is known, and
 *   - the method's switch is on, and method.state is a MessageTemplates of the
 *     same owner with a template for this kind of message.
 * All other messages go to the Python function, without a side effect.
 */
#include "bind/common/python.h"

#include <structmember.h>

#include "bind/common/types.h"
#include "bind/flows/flow_ids.h"
#include "bind/track_event/category.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_template.h"
#include "bind/track_event/event_template.h"
#include "bind/track_event/slice.h"
#include "bind/track_event/thread_state.h"

typedef struct {
  PyObject_HEAD
  PyObject* owner;
  /* The templates of a method, by [received, sent][kind of message].  An entry
   * is NULL if there is no template for that kind. */
  PyObject* templates[2][MESSAGE_KINDS];
} TemplatesObject;

static PyTypeObject* templates_type;
static PyTypeObject* hook_type;
static PyObject *state_name, *ids_name, *switch_name, *enabled_name;

static int templates_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"owner", NULL};
  TemplatesObject* t = (TemplatesObject*)self;
  PyObject* owner;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:MessageTemplates", names,
                                   &owner))
    return -1;
  Py_XSETREF(t->owner, Py_NewRef(owner));
  return 0;
}

static PyObject* templates_put(PyObject* self, PyObject* args) {
  int outgoing, kind;
  PyObject* template;
  if (!PyArg_ParseTuple(args, "piO!:put", &outgoing, &kind,
                        st_event_template_type, &template))
    return NULL;
  if (kind < 0 || kind >= MESSAGE_KINDS) {
    PyErr_SetString(PyExc_ValueError, "there is no such kind of message");
    return NULL;
  }
  Py_INCREF(template);
  Py_XSETREF(((TemplatesObject*)self)->templates[outgoing][kind], template);
  Py_RETURN_NONE;
}

static int templates_traverse(PyObject* self, visitproc visit, void* arg) {
  TemplatesObject* t = (TemplatesObject*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->owner);
  return 0;
}

static int templates_clear(PyObject* self) {
  TemplatesObject* t = (TemplatesObject*)self;
  Py_CLEAR(t->owner);
  for (int i = 0; i < 2 * MESSAGE_KINDS; i++)
    Py_CLEAR(t->templates[i / MESSAGE_KINDS][i % MESSAGE_KINDS]);
  return 0;
}

static void templates_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  templates_clear(self);
  st_bind_free(self);
}

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* owner;
  /* The Python function that handles all messages that this hook does not
   * handle. */
  PyObject* otherwise;
  /* A context variable: the flow of the message that the program is
   * handling. */
  PyObject* incoming;
  /* The category for messages of methods whose own category is off. */
  CategoryObject* transport;
  bool outgoing;
} HookObject;

/* The positions of a hook's arguments, counted from the argument `method`. */
enum { METHOD, KIND, TXID, SIZE, HANDLES, ANSWER, DATA, MESSAGE_ARGUMENTS };

struct message {
  PyObject* channel;
  PyObject* const* arguments;
  Py_ssize_t count; /* The number of entries that are used in `arguments`. */
  uint64_t stamp;
  struct flow_message flow;
  FlowIdsObject* ids; /* A strong reference to the channel's FlowIds. */
  /* A strong reference to the method's MessageTemplates. */
  TemplatesObject* templates;
  EventTemplateObject* template;
};

static uint64_t integer(PyObject* value, bool* ok) {
  if (!PyLong_Check(value)) {
    *ok = false;
    return 0;
  }
  return PyLong_AsUnsignedLongLongMask(value);
}

/* Converts the arguments of a hook.  Returns false if there are too few or too
 * many, or if one has an unexpected type. */
static bool read_arguments(struct message* m, const HookObject* h,
                           PyObject* const* args, Py_ssize_t count) {
  bool ok = true;
  Py_ssize_t before = h->outgoing ? 2 : 1;
  m->count = count - before;
  if (m->count <= SIZE || m->count > MESSAGE_ARGUMENTS)
    return false;
  m->channel = args[0];
  m->stamp = h->outgoing ? integer(args[1], &ok) : 0;
  m->arguments = args + before;
  m->flow.outgoing = h->outgoing;
  uint64_t kind = integer(m->arguments[KIND], &ok);
  m->flow.kind = (enum message_kind)kind;
  m->flow.txid = integer(m->arguments[TXID], &ok);
  m->flow.answer = m->count > ANSWER ? integer(m->arguments[ANSWER], &ok) : 0;
  return ok && kind < MESSAGE_CONTROL;
}

/* Returns a new reference to an attribute of an object.  Returns NULL, without
 * an exception, if the object has no such attribute. */
static PyObject* attribute(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  if (!found)
    PyErr_Clear();
  return found;
}

static bool find_ids(struct message* m, PyObject* owner) {
  PyObject* state = attribute(m->channel, state_name);
  PyObject* ids = state ? attribute(state, ids_name) : NULL;
  Py_XDECREF(state);
  if (!ids || Py_TYPE(ids) != st_flow_ids_type ||
      ((FlowIdsObject*)ids)->owner != owner) {
    Py_XDECREF(ids);
    return false;
  }
  m->ids = (FlowIdsObject*)ids;
  return true;
}

/* Returns the attribute method.switch.enabled as a borrowed reference: Py_True
 * or Py_False.  If the result is another object, `method` is not a method
 * object. */
static PyObject* is_on(PyObject* method) {
  PyObject* on = attribute(method, switch_name);
  PyObject* enabled = on ? attribute(on, enabled_name) : NULL;
  Py_XDECREF(on);
  /* This reference may be dropped, because Py_True and Py_False are never
   * freed. */
  Py_XDECREF(enabled);
  return enabled;
}

static bool find_template(struct message* m, PyObject* owner) {
  PyObject* state = attribute(m->arguments[METHOD], state_name);
  if (!state || !PyObject_TypeCheck(state, templates_type) ||
      ((TemplatesObject*)state)->owner != owner) {
    Py_XDECREF(state);
    return false;
  }
  m->templates = (TemplatesObject*)state;
  m->template = (EventTemplateObject*)
                    m->templates->templates[m->flow.outgoing][m->flow.kind];
  return m->template != NULL;
}

/* Returns the value of the event argument `incoming` for a sent message: the
 * flow of the message that this thread or task is handling, or None.  The value
 * is signed, like column trace_id in the trace processor's table `flow`. */
static PyObject* cause_of(const HookObject* h, const struct message* m) {
  PyObject* value = NULL;
  if (!h->outgoing || m->flow.kind == MESSAGE_REPLY)
    return Py_NewRef(Py_None);
  if (PyContextVar_Get(h->incoming, NULL, &value) < 0)
    PyErr_Clear();
  bool ok = value != NULL;
  uint64_t flow = ok ? integer(value, &ok) : 0;
  Py_XDECREF(value);
  return flow ? PyLong_FromLongLong((int64_t)flow) : Py_NewRef(Py_None);
}

static PyObject* given(const struct message* m, int at) {
  return m->count > at ? m->arguments[at] : Py_None;
}

/* Records the event of a message.  The result is also the result of the hook: a
 * slice or None.  Returns NULL with an exception set on failure. */
static PyObject* show(const HookObject* h, const struct message* m,
                      PyObject* flow, PyObject* cause) {
  PyObject* handles = given(m, HANDLES);
  bool none = handles == Py_None || PyObject_IsTrue(handles) != 1;
  PyObject* values[] = {m->arguments[TXID], m->arguments[SIZE],
                        none ? Py_None : handles, Py_None, cause};
  bool is_reply = m->flow.kind == MESSAGE_REPLY;
  struct event_request r = {.type = is_reply ? ST_INSTANT : ST_SLICE_BEGIN,
                            .has_timestamp = h->outgoing,
                            .timestamp = m->stamp};
  template_request(&r, m->template, values, cause == Py_None ? 3 : 5);
  /* Only a received message other than a request ends its flow: the flow of a
   * request continues with the reply. */
  if (h->outgoing || m->flow.kind == MESSAGE_REQUEST)
    r.flow = flow;
  else
    r.terminating_flow = flow;
  if (h->outgoing && is_reply) {
    emit_template(&r, category_mask(m->template->category));
    Py_RETURN_NONE;
  }
  if (!h->outgoing && !is_reply) {
    r.within = PyTuple_Pack(2, h->incoming, flow);
    if (!r.within)
      return NULL;
  }
  PyObject* shown = template_slice_new(&r);
  Py_XDECREF(r.within);
  if (!shown || !h->outgoing || m->flow.kind == MESSAGE_REQUEST)
    return shown;
  /* Nothing runs inside this slice, so it is left at once. */
  bool ok = slice_pass(shown);
  Py_DECREF(shown);
  return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject* count_and_show(const HookObject* h, struct message* m) {
  m->ids->used = true;
  uint64_t id = flow_ids_next(m->ids, &m->flow);
  if (!category_mask(m->template->category))
    Py_RETURN_NONE;
  PyObject* flow = PyLong_FromUnsignedLongLong(id);
  PyObject* cause = flow ? cause_of(h, m) : NULL;
  PyObject* shown = cause ? show(h, m, flow, cause) : NULL;
  Py_XDECREF(cause);
  Py_XDECREF(flow);
  return shown;
}

enum task { PASS_ON, COUNT, SHOW };

static enum task task_of(const HookObject* h, struct message* m) {
  if (!find_ids(m, h->owner))
    return PASS_ON;
  PyObject* on = is_on(m->arguments[METHOD]);
  if (on == Py_False && !category_mask(h->transport))
    return COUNT;
  bool ready = on == Py_True && flow_ids_know(m->ids, &m->flow) &&
               find_template(m, h->owner);
  return ready ? SHOW : PASS_ON;
}

static PyObject* do_task(const HookObject* h, struct message* m,
                         enum task task) {
  if (task == SHOW)
    return count_and_show(h, m);
  m->ids->used = true;
  flow_ids_skip(m->ids, &m->flow);
  Py_RETURN_NONE;
}

static PyObject* hook_call(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  const HookObject* h = (HookObject*)self;
  struct message m = {.ids = NULL};
  enum task task = PASS_ON;
  if (!kwnames && !st_own.events_underway &&
      read_arguments(&m, h, args, PyVectorcall_NARGS(nargsf)))
    task = task_of(h, &m);
  PyObject* result = task == PASS_ON ? NULL : do_task(h, &m, task);
  Py_XDECREF((PyObject*)m.ids);
  Py_XDECREF((PyObject*)m.templates);
  if (task != PASS_ON)
    return result;
  return PyObject_Vectorcall(h->otherwise, args, nargsf, kwnames);
}

static PyObject* hook_new(PyTypeObject* type, PyObject* args,
                          PyObject* kwargs) {
  static char* names[] = {"owner",     "otherwise", "incoming",
                          "transport", "outgoing",  NULL};
  PyObject *owner, *otherwise, *incoming, *transport;
  int outgoing;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!O!p:MessageHook", names,
                                   &owner, &otherwise, &PyContextVar_Type,
                                   &incoming, st_category_type, &transport,
                                   &outgoing))
    return NULL;
  HookObject* h = (HookObject*)type->tp_alloc(type, 0);
  if (!h)
    return NULL;
  h->vectorcall = hook_call;
  h->owner = Py_NewRef(owner);
  h->otherwise = Py_NewRef(otherwise);
  h->incoming = Py_NewRef(incoming);
  h->transport = (CategoryObject*)Py_NewRef(transport);
  h->outgoing = outgoing;
  return (PyObject*)h;
}

static int hook_traverse(PyObject* self, visitproc visit, void* arg) {
  HookObject* h = (HookObject*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(h->owner);
  Py_VISIT(h->otherwise);
  Py_VISIT(h->incoming);
  return 0;
}

static int hook_clear(PyObject* self) {
  HookObject* h = (HookObject*)self;
  Py_CLEAR(h->owner);
  Py_CLEAR(h->otherwise);
  Py_CLEAR(h->incoming);
  Py_CLEAR(h->transport);
  return 0;
}

static void hook_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  hook_clear(self);
  st_bind_free(self);
}

static PyMethodDef kTemplatesMethods[] = {
    {"put", templates_put, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef kTemplatesMembers[] = {
    {"owner", T_OBJECT, offsetof(TemplatesObject, owner), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot kTemplatesSlots[] = {
    {Py_tp_doc,
     "The event templates of a method's messages, for a MessageHook."},
    {Py_tp_init, templates_init},
    {Py_tp_traverse, templates_traverse},
    {Py_tp_clear, templates_clear},
    {Py_tp_dealloc, templates_dealloc},
    {Py_tp_methods, kTemplatesMethods},
    {Py_tp_members, kTemplatesMembers},
    {0, NULL}};
static PyType_Spec kTemplatesSpec =
    ST_BIND_SPEC("MessageTemplates", TemplatesObject,
                 Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kTemplatesSlots);

static PyMemberDef kHookMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookObject, vectorcall),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot kHookSlots[] = {
    {Py_tp_doc, "The native `sent` or `received` hook of a tracer."},
    {Py_tp_new, hook_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, hook_traverse},
    {Py_tp_clear, hook_clear},
    {Py_tp_dealloc, hook_dealloc},
    {Py_tp_members, kHookMembers},
    {0, NULL}};
static PyType_Spec kHookSpec =
    ST_BIND_SPEC("MessageHook", HookObject,
                 Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, kHookSlots);

ST_BIND_PART(message_hook) {
  state_name = PyUnicode_InternFromString("state");
  ids_name = PyUnicode_InternFromString("ids");
  switch_name = PyUnicode_InternFromString("switch");
  enabled_name = PyUnicode_InternFromString("enabled");
  if (!state_name || !ids_name || !switch_name || !enabled_name)
    return -1;
  if (st_bind_keep_type(module, &kTemplatesSpec, &templates_type) < 0)
    return -1;
  return st_bind_keep_type(module, &kHookSpec, &hook_type);
}
