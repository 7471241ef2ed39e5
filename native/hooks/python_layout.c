/* CPython declares the structures below only for sources that define this
 * macro. */
#define Py_BUILD_CORE 1
#include "hooks/python_layout.h"

#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#endif

#include "core/hot.h"

#if PY_VERSION_HEX >= 0x030D0000
#define FRAME_CODE f_executable
#else
#define FRAME_CODE f_code
#endif

#if PY_VERSION_HEX >= 0x030E0000
enum { FOREIGN = FRAME_OWNED_BY_INTERPRETER };
#if PY_VERSION_HEX >= 0x030F0000
enum { LAST_OWNER = FOREIGN };
#else
enum { LAST_OWNER = FRAME_OWNED_BY_CSTACK };
#endif
#elif PY_VERSION_HEX >= 0x030C0000
enum { FOREIGN = FRAME_OWNED_BY_CSTACK, LAST_OWNER = FOREIGN };
#else
enum { LAST_OWNER = FRAME_OWNED_BY_FRAME_OBJECT };
enum { FOREIGN = LAST_OWNER + 1 };
#endif

_Static_assert(offsetof(_PyInterpreterFrame, FRAME_CODE) ==
                   ST_FRAME_CODE_OFFSET,
               "the code of a frame");

const struct st_stack_layout st_python_layout = {
    .thread_previous = offsetof(PyThreadState, prev),
    .thread_next = offsetof(PyThreadState, next),
    .thread_id = offsetof(PyThreadState, id),
    .thread_native_id = offsetof(PyThreadState, native_thread_id),
#if PY_VERSION_HEX >= 0x030D0000
    .thread_frame = offsetof(PyThreadState, current_frame),
#else
    .thread_frame = offsetof(PyThreadState, cframe),
    .control_frame = offsetof(_PyCFrame, current_frame),
    .has_control_frame = true,
#endif
    .thread_chunk = offsetof(PyThreadState, datastack_chunk),
    .frame_code = offsetof(_PyInterpreterFrame, FRAME_CODE),
    .frame_previous = offsetof(_PyInterpreterFrame, previous),
    .frame_owner = offsetof(_PyInterpreterFrame, owner),
#if PY_VERSION_HEX >= 0x030D0000
    .frame_instruction = offsetof(_PyInterpreterFrame, instr_ptr),
#else
    .frame_instruction = offsetof(_PyInterpreterFrame, prev_instr),
#endif
#if PY_VERSION_HEX < 0x030C0000
    .frame_object = offsetof(_PyInterpreterFrame, frame_obj),
    .frame_globals = offsetof(_PyInterpreterFrame, f_globals),
    .frame_state = offsetof(_PyInterpreterFrame, previous),
#endif
    .first_foreign_owner = FOREIGN,
    .last_owner = LAST_OWNER,
    .code_tag = ST_CODE_TAG,
};

uint64_t st_python_threads(void) {
  return (uint64_t)(uintptr_t)&PyInterpreterState_Main()->threads.head;
}

static struct _gil_runtime_state* gil(void) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyInterpreterState_Main()->ceval.gil;
#else
  return &_PyRuntime.ceval.gil;
#endif
}

struct st_address_range st_python_gil(void) {
  return (struct st_address_range){(uint64_t)(uintptr_t)gil(),
                                   sizeof(struct _gil_runtime_state)};
}

const pthread_cond_t* st_python_gil_condition(void) {
  return &gil()->cond;
}

const pthread_cond_t* st_python_gil_switch_condition(void) {
  return &gil()->switch_cond;
}

/* Both fields are atomic in some versions, in structs of their own. */
bool st_python_gil_is_held(void) {
  return __atomic_load_n((const int*)&gil()->locked, __ATOMIC_RELAXED) > 0;
}

uint64_t st_python_gil_holder(void) {
  return __atomic_load_n((const uintptr_t*)&gil()->last_holder,
                         __ATOMIC_RELAXED);
}

static struct st_stack_frame python_call(_PyInterpreterFrame* f) {
  while (f && f->owner >= FOREIGN)
    f = f->previous;
  struct st_stack_frame frame = {.address = (uint64_t)(uintptr_t)f};
  if (f) {
    memcpy(&frame.code, &f->FRAME_CODE, sizeof frame.code);
    frame.code &= ~(uint64_t)ST_CODE_TAG;
  }
  return frame;
}

ST_HOT struct st_stack_frame st_python_frame(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030D0000
  return python_call(thread->current_frame);
#else
  return python_call(thread->cframe ? thread->cframe->current_frame : NULL);
#endif
}

ST_HOT struct st_stack_frame st_python_caller(struct st_stack_frame frame) {
  _PyInterpreterFrame* f = (_PyInterpreterFrame*)(uintptr_t)frame.address;
  return python_call(f ? f->previous : NULL);
}

int st_python_instruction(struct st_stack_frame frame) {
  _PyInterpreterFrame* f = (_PyInterpreterFrame*)(uintptr_t)frame.address;
  return _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT);
}

static PyCodeObject* code_of(struct st_stack_frame frame) {
  PyObject* code = (PyObject*)(uintptr_t)frame.code;
  return code && PyCode_Check(code) ? (PyCodeObject*)code : NULL;
}

int st_python_variables(struct st_stack_frame frame) {
  PyCodeObject* code = code_of(frame);
  return code ? code->co_nlocalsplus : 0;
}

PyObject* st_python_variable(struct st_stack_frame frame, int i,
                             PyObject** name) {
  _PyInterpreterFrame* f = (_PyInterpreterFrame*)(uintptr_t)frame.address;
  uint64_t value;
  memcpy(&value, &f->localsplus[i], sizeof value);
  *name = PyTuple_GET_ITEM(code_of(frame)->co_localsplusnames, i);
  return (PyObject*)(uintptr_t)(value & ~(uint64_t)ST_CODE_TAG);
}

PyObject* st_python_global(struct st_stack_frame frame, PyObject* name) {
  _PyInterpreterFrame* f = (_PyInterpreterFrame*)(uintptr_t)frame.address;
  PyObject* value = f->f_globals && PyDict_CheckExact(f->f_globals)
                        ? PyDict_GetItemWithError(f->f_globals, name)
                        : NULL;
  if (!value)
    PyErr_Clear();
  return value;
}

ST_HOT_IN_ORDER(3)
bool st_python_only_item(PyObject* dict, PyObject** key, PyObject** value) {
  const PyDictObject* d = (const PyDictObject*)dict;
  if (d->ma_used != 1 || d->ma_values || !DK_IS_UNICODE(d->ma_keys) ||
      d->ma_keys->dk_nentries != 1)
    return false;
  const PyDictUnicodeEntry* entry = DK_UNICODE_ENTRIES(d->ma_keys);
  *key = entry->me_key;
  *value = entry->me_value;
  return true;
}

/* The lowest bits of the link are marks of the collector. */
static PyGC_Head* next_tracked(const PyGC_Head* g) {
  return (PyGC_Head*)(g->_gc_next & ~(uintptr_t)3);
}

static void tracked_of(PyGC_Head* list, void (*each)(PyObject*, void*),
                       void* self) {
  for (PyGC_Head* g = next_tracked(list); g != list; g = next_tracked(g))
    each((PyObject*)(g + 1), self);
}

void st_python_tracked(void (*each)(PyObject*, void*), void* self) {
  struct _gc_runtime_state* gc = &PyInterpreterState_Main()->gc;
#if PY_VERSION_HEX >= 0x030E0000
  /* The names of these members have changed within 3.14; their place has not. */
  struct gc_generation* generations =
      &gc->permanent_generation - NUM_GENERATIONS;
#else
  struct gc_generation* generations = gc->generations;
#endif
  for (int i = 0; i < NUM_GENERATIONS; i++)
    tracked_of(&generations[i].head, each, self);
  tracked_of(&gc->permanent_generation.head, each, self);
}

bool st_python_profiles_calls(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030C0000
  enum { CALL = 4, SYS_PROFILE = 6 }; /* An event, and a tool of monitoring. */
  return thread->interp->monitors.tools[CALL] >> SYS_PROFILE & 1;
#else
  (void)thread;
  return false;
#endif
}

PyThreadState* st_python_attached_thread(void) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  PyThreadState* thread = _PyThreadState_UncheckedGet();
#if PY_VERSION_HEX < 0x030C0000
  /* Here it is the state of the thread that holds the GIL, whichever that is. */
  if (thread != PyGILState_GetThisThreadState())
    return NULL;
#endif
  return thread;
#endif
}

uint64_t st_python_coroutine_frame(PyObject* coroutine) {
  bool has_frame = PyCoro_CheckExact(coroutine) ||
                   PyAsyncGen_CheckExact(coroutine) ||
                   PyGen_CheckExact(coroutine);
  return has_frame
             ? (uint64_t)(uintptr_t) & ((PyGenObject*)coroutine)->gi_iframe
             : 0;
}

/* Returns the object at this address, if it has the type.  A freed object has no
 * references, or the allocator has stored an address there. */
static PyObject* object_at(uint64_t address, PyTypeObject* type) {
  PyVarObject copy;
  bool mapped =
      address && address % sizeof(void*) == 0 &&
      st_own_memory.read(st_own_memory.self, address, &copy, sizeof copy);
  Py_ssize_t references = mapped ? Py_REFCNT(&copy) : 0;
  return references > 0 && references <= INT32_MAX && Py_IS_TYPE(&copy, type)
             ? (PyObject*)(uintptr_t)address
             : NULL;
}

PyObject* st_python_code_at(uint64_t address) {
  return object_at(address, &PyCode_Type);
}

PyObject* st_python_dict_at(uint64_t address) {
  return object_at(address, &PyDict_Type);
}

static void mark_calls_of(PyThreadState* thread) {
  PyFrameObject* frame = PyThreadState_GetFrame(thread);
  for (int i = 0; frame && i < ST_STACK_MAX_DEPTH; i++)
    Py_SETREF(frame, PyFrame_GetBack(frame));
  Py_XDECREF(frame);
}

void st_python_mark_calls(void) {
  PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; t; t = PyThreadState_Next(t))
    mark_calls_of(t);
}

void st_python_request_gil(void) {
#if PY_VERSION_HEX < 0x030C0000
  struct _ceval_state* c = &PyInterpreterState_Main()->ceval;
  _Py_atomic_store_relaxed(&c->gil_drop_request, 1);
  _Py_atomic_store_relaxed(&c->eval_breaker, 1);
#endif
}

/* The generations are an array, or two fields one behind the other. */
static struct gc_generation* generations(void) {
  struct _gc_runtime_state* gc = &PyInterpreterState_Main()->gc;
#if defined(Py_GIL_DISABLED) || \
    (PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030E0500)
  return &gc->young;
#else
  return gc->generations;
#endif
}

void st_python_thresholds(int thresholds[ST_GENERATIONS]) {
  for (int i = 0; i < ST_GENERATIONS; i++)
    thresholds[i] = generations()[i].threshold;
}

int* st_python_object_count(void) {
#ifdef Py_GIL_DISABLED
  return NULL;
#else
  return &generations()->count;
#endif
}

void st_python_forget_due_collection(void) {
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
  _Py_atomic_store_relaxed(&PyInterpreterState_Main()->ceval.gc_scheduled, 0);
#endif
}

void st_python_rearm(PyObject* code) {
#if PY_VERSION_HEX >= 0x030C0000
  /* The store may be relaxed: the thread that reads the version uses no other
   * data with it.  What that thread does next is ordered by the GIL. */
  __atomic_store_n(&((PyCodeObject*)code)->_co_instrumentation_version, 0,
                   __ATOMIC_RELAXED);
#else
  (void)code;
#endif
}
