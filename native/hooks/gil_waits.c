#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/gil_waits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/gil_thread.h"
#include "hooks/python_layout.h"
#include "hooks/tracer.h"
#include "probes/import_slots.h"

enum { MAX_TRACKS = 1024, HOLDERS = 64 };

struct gil_wait {
  uint64_t begin, end;
  uint64_t holder; /* The thread state that had the GIL at the begin. */
  uint64_t thread; /* The kernel's id of the thread that has waited. */
};

/* Changed by the thread that has the mutex of the GIL's condition, except
 * `taken`, which is changed with the GIL. */
static struct {
  struct gil_wait waits[ST_GIL_WAITS];
  _Atomic uint32_t added, taken;
  _Atomic uint64_t short_waits, short_ns, lost;
} ring;

/* Changed with the GIL. */
static struct {
  PyObject* template, *make_track; /* NULL while nothing is recorded. */
  PyObject* tracks;                /* A dict: kernel's id -> Track or None. */
  struct {
    uint64_t state;
    PyObject* tid;
  } holders[HOLDERS];
  struct st_import import;
} gil;

/* The number of the running recording; 0 if there is none. */
static _Atomic uint32_t recording;
static uint32_t last_recording;
static const pthread_cond_t* condition;

/* The wait of this thread, and the recording in which it began. */
static _Thread_local struct {
  uint64_t begin, holder, thread;
  uint32_t recording;
} own;

/* --- On the waiting thread ----------------------------------------------- */

static uint64_t own_id(void) {
  if (!own.thread)
    own.thread = (uint64_t)syscall(SYS_gettid);
  return own.thread;
}

static void add_wait(uint64_t begin, uint64_t end, uint64_t holder) {
  if (end - begin < ST_MIN_GIL_WAIT_NS) {
    ring.short_waits++;
    ring.short_ns += end - begin;
    return;
  }
  uint32_t added = ring.added;
  if (added - ring.taken == ST_GIL_WAITS) {
    ring.lost++;
    return;
  }
  ring.waits[added % ST_GIL_WAITS] =
      (struct gil_wait){begin, end, holder, own_id()};
  ring.added = added + 1;
}

/* The caller waits in a loop, so a wait may take several calls.  It has ended
 * if no thread holds the GIL: the caller then takes it before it unlocks the
 * mutex. */
static int observed_wait(pthread_cond_t* waited, pthread_mutex_t* mutex,
                         const struct timespec* until) {
  uint32_t number = recording;
  if (waited != condition || !number || st_gil_thread_is_current())
    return pthread_cond_timedwait(waited, mutex, until);
  if (own.recording != number) {
    own.recording = number;
    own.holder = st_python_gil_holder();
    own.begin = st_hooks.api->now();
  }
  int result = pthread_cond_timedwait(waited, mutex, until);
  if (!st_python_gil_is_held()) {
    own.recording = 0;
    if (recording == number)
      add_wait(own.begin, st_hooks.api->now(), own.holder);
  }
  return result;
}

/* --- Writing, with the GIL ----------------------------------------------- */

static PyObject* new_track(uint64_t thread) {
  PyObject* parent = st_hooks.api->thread_track(thread);
  PyObject* track = parent ? PyObject_CallOneArg(gil.make_track, parent) : NULL;
  Py_XDECREF(parent);
  if (!track)
    st_drop_error();
  return track ? track : Py_NewRef(Py_None);
}

/* Returns the track for a thread, as a borrowed reference; NULL on failure. */
static PyObject* track_of(uint64_t thread) {
  PyObject* key = PyLong_FromUnsignedLongLong(thread);
  PyObject* track = key ? PyDict_GetItemWithError(gil.tracks, key) : NULL;
  if (key && !track) {
    if (PyDict_GET_SIZE(gil.tracks) >= MAX_TRACKS)
      PyDict_Clear(gil.tracks);
    PyObject* made = new_track(thread);
    PyDict_SetItem(gil.tracks, key, made);
    Py_DECREF(made); /* The dict has it. */
    track = PyDict_GetItemWithError(gil.tracks, key);
  }
  Py_XDECREF(key);
  PyErr_Clear();
  return track && track != Py_None ? track : NULL;
}

static uint64_t find_holder(uint64_t state) {
  PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  while (t && (uint64_t)(uintptr_t)t != state)
    t = PyThreadState_Next(t);
  return t ? t->native_thread_id : 0;
}

/* Returns the kernel's id of the thread with this state, or None if it has
 * ended.  A borrowed reference, which the table of holders has. */
static PyObject* holder_of(uint64_t state) {
  size_t slot = (state * 0x9E3779B97F4A7C15u) >> 58;
  if (gil.holders[slot].state != state) {
    uint64_t tid = find_holder(state);
    PyObject* found = tid ? PyLong_FromUnsignedLongLong(tid) : NULL;
    PyErr_Clear();
    gil.holders[slot].state = state;
    Py_XSETREF(gil.holders[slot].tid, found ? found : Py_NewRef(Py_None));
  }
  return gil.holders[slot].tid;
}

static void forget_holders(void) {
  for (int i = 0; i < HOLDERS; i++) {
    gil.holders[i].state = 0;
    Py_CLEAR(gil.holders[i].tid);
  }
}

static void write_wait(const struct gil_wait* w) {
  PyObject* track = track_of(w->thread);
  if (!track)
    return;
  const struct st_past_slice slice = {
      w->begin, w->end, {holder_of(w->holder)}, .count = 1};
  st_hooks.api->past_slice(gil.template, track, &slice);
}

/* Python code may run meanwhile, and other threads with it: so each wait is
 * taken before it is written. */
static void write_waits(void) {
  while (gil.template && ring.taken != ring.added) {
    uint32_t taken = ring.taken;
    struct gil_wait w = ring.waits[taken % ST_GIL_WAITS];
    ring.taken = taken + 1;
    write_wait(&w);
  }
  forget_holders();
}

static bool has_waits(void) {
  return ring.taken != ring.added;
}

static struct st_gil_thread writer = {.name = "stretto-gil",
                                      .pause_ms = ST_GIL_PAUSE_MS,
                                      .is_needed = has_waits,
                                      .work = write_waits};

/* --- Fork ---------------------------------------------------------------- */

/* The waits in the ring are those of the parent. */
static void forget(void) {
  st_gil_thread_forget(&writer);
  ring.taken = ring.added;
  ring.short_waits = ring.short_ns = ring.lost = 0;
  own.thread = 0;
}

static void initialize(void) {
  pthread_atfork(NULL, NULL, forget);
}

static void start_writer(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!gil.template)
    return;
  pthread_once(&once, initialize);
  st_gil_thread_start(&writer);
}

static PyObject* pause_waits(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(unused)) {
  st_gil_thread_stop(&writer);
  Py_RETURN_NONE;
}

static PyObject* resume_waits(PyObject* Py_UNUSED(module),
                              PyObject* Py_UNUSED(unused)) {
  start_writer();
  Py_RETURN_NONE;
}

/* --- Start and stop ------------------------------------------------------ */

static const char* find_import(struct st_import* import) {
#ifdef Py_GIL_DISABLED
  (void)import;
  return "not in free-threaded builds";
#else
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    return "only in the main interpreter";
  return st_import_find(import, (const void*)(uintptr_t)PyEval_RestoreThread,
                        "pthread_cond_timedwait",
                        (const void*)(uintptr_t)pthread_cond_timedwait);
#endif
}

static PyObject* problem(PyObject* Py_UNUSED(module),
                         PyObject* Py_UNUSED(unused)) {
  struct st_import import;
  const char* text = gil.template ? NULL : find_import(&import);
  return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static void* observer(void) {
  return (void*)(uintptr_t)observed_wait;
}

/* Begins the recording; returns why that fails, or NULL. */
static const char* begin_recording(void) {
  const char* text = find_import(&gil.import);
  if (text)
    return text;
  condition = st_python_gil_condition();
  ring.taken = ring.added;
  ring.short_waits = ring.short_ns = ring.lost = 0;
  if (!st_import_replace(&gil.import, observer()))
    return "the slot of the function can't be written";
  if (!++last_recording)
    ++last_recording;
  recording = last_recording;
  return NULL;
}

static PyObject* start(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* template, *make_track;
  if (!PyArg_ParseTuple(args, "OO", &template, &make_track))
    return NULL;
  if (gil.template)
    Py_RETURN_NONE;
  if (!gil.tracks && !(gil.tracks = PyDict_New()))
    return NULL;
  const char* text = begin_recording();
  if (text)
    return PyUnicode_FromString(text);
  gil.make_track = Py_NewRef(make_track);
  gil.template = Py_NewRef(template);
  start_writer();
  Py_RETURN_NONE;
}

static PyObject* stop(PyObject* Py_UNUSED(module),
                      PyObject* Py_UNUSED(unused)) {
  if (!gil.template)
    Py_RETURN_NONE;
  recording = 0;
  st_import_restore(&gil.import, observer());
  Py_CLEAR(gil.template);
  Py_CLEAR(gil.make_track);
  Py_CLEAR(gil.tracks);
  st_gil_thread_stop(&writer);
  Py_RETURN_NONE;
}

static PyObject* write_all(PyObject* Py_UNUSED(module),
                           PyObject* Py_UNUSED(unused)) {
  write_waits();
  return Py_BuildValue(
      "(KKK)", (unsigned long long)atomic_exchange(&ring.short_waits, 0),
      (unsigned long long)atomic_exchange(&ring.short_ns, 0),
      (unsigned long long)atomic_exchange(&ring.lost, 0));
}

static PyMethodDef kFunctions[] = {
    {"start_gil_waits", start, METH_VARARGS,
     "start_gil_waits(template, make_track)\n--\n\nRecord waits for the GIL as "
     "slices; return why that is impossible, or None."},
    {"stop_gil_waits", stop, METH_NOARGS, "Stop recording waits for the GIL."},
    {"write_gil_waits", write_all, METH_NOARGS,
     "Write the waits that have ended; return how many were too short for a "
     "slice since the last call, their time in ns, and how many were lost."},
    {"gil_waits_problem", problem, METH_NOARGS,
     "Return why waits for the GIL can't be recorded, or None."},
    {"pause_gil_waits", pause_waits, METH_NOARGS,
     "Stop the thread that writes the waits, before a fork."},
    {"resume_gil_waits", resume_waits, METH_NOARGS,
     "Start the thread again, if waits are recorded."},
    {NULL, NULL, 0, NULL}};

int st_add_gil_waits(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
