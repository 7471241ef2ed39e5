#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/gil_waits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/wait_ring.h"
#include "hooks/gil_thread.h"
#include "hooks/python_layout.h"
#include "hooks/thread_ids.h"
#include "hooks/tracer.h"
#include "probes/import_slots.h"
#include "probes/process_memory.h"

enum { MAX_TRACKS = 1024 };

/* A thread waits until it can take the GIL, or until another one has taken it. */
enum kind { TAKE, HAND_OVER, KINDS };

static struct st_wait_ring rings[KINDS];

/* Changed with the GIL. */
static struct {
  PyObject* templates[KINDS];
  PyObject* make_track; /* NULL while nothing is recorded. */
  PyObject* tracks;     /* A dict: kernel's id -> Track or None. */
  struct st_import imports[KINDS];
} gil;

/* The number of the running recording; 0 if there is none. */
static _Atomic uint32_t recording;
static uint32_t last_recording;
static const pthread_cond_t* conditions[KINDS];

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

/* Returns the kernel's id of the thread that has the GIL, or had it last; 0 if it
 * can't be read.  It is read at once: a thread that begins later may get the memory
 * of a thread state.  That memory is read by the kernel, as a thread may swap its
 * state for another one and free it. */
static uint64_t holder_id(void) {
  unsigned long id = 0;
  uint64_t at =
      st_python_gil_holder() + offsetof(PyThreadState, native_thread_id);
  return st_process_read(getpid(), at, &id, sizeof id) ? id : 0;
}

/* Ends a wait that began in the recording `number`. */
static void add_wait(enum kind kind, uint32_t number, uint64_t begin,
                     uint64_t holder) {
  if (recording != number)
    return;
  uint64_t thread = own_id();
  /* The state of a sub-interpreter has the id of the thread that made it. */
  bool is_own = holder == thread;
  const struct st_ended_wait wait = {begin, st_hooks.api->now(),
                                     is_own ? 0 : holder, thread};
  st_wait_ring_add(&rings[kind], &wait);
}

/* Returns the number of the recording if a call waits for this condition of the
 * GIL and is recorded, else 0. */
static uint32_t recorded(enum kind kind, const pthread_cond_t* waited) {
  uint32_t number = recording;
  bool is_other = waited != conditions[kind] || st_gil_thread_is_current();
  return is_other ? 0 : number;
}

/* The caller waits in a loop, so a wait may take several calls.  It has ended
 * if no thread holds the GIL: the caller then takes it before it unlocks the
 * mutex. */
static int observed_take(pthread_cond_t* waited, pthread_mutex_t* mutex,
                         const struct timespec* until) {
  uint32_t number = recorded(TAKE, waited);
  if (!number)
    return pthread_cond_timedwait(waited, mutex, until);
  if (own.recording != number) {
    own.recording = number;
    own.begin = st_hooks.api->now();
    own.holder = holder_id();
  }
  int result = pthread_cond_timedwait(waited, mutex, until);
  if (!st_python_gil_is_held()) {
    own.recording = 0;
    add_wait(TAKE, number, own.begin, own.holder);
  }
  return result;
}

/* The thread has given up the GIL; it waits until another one has taken it. */
static int observed_hand_over(pthread_cond_t* waited, pthread_mutex_t* mutex) {
  uint32_t number = recorded(HAND_OVER, waited);
  if (!number)
    return pthread_cond_wait(waited, mutex);
  uint64_t begin = st_hooks.api->now();
  int result = pthread_cond_wait(waited, mutex);
  add_wait(HAND_OVER, number, begin, holder_id());
  return result;
}

/* --- Writing, with the GIL ----------------------------------------------- */

/* Returns a new track, or None.  Python code runs meanwhile, so the recording may
 * end. */
static PyObject* new_track(uint64_t thread) {
  PyObject *make = Py_NewRef(gil.make_track), *track = NULL;
  PyObject* parent = st_hooks.api->thread_track(thread);
  if (parent)
    track = PyObject_CallOneArg(make, parent);
  Py_XDECREF(parent);
  Py_DECREF(make);
  if (!track)
    st_drop_error();
  return track ? track : Py_NewRef(Py_None);
}

static void keep_track(PyObject* key, PyObject* track) {
  if (!gil.tracks)
    return;
  if (PyDict_GET_SIZE(gil.tracks) >= MAX_TRACKS)
    PyDict_Clear(gil.tracks);
  PyDict_SetItem(gil.tracks, key, track);
  PyErr_Clear();
}

/* Returns the track for a thread, or None, as a new reference; NULL on failure. */
static PyObject* track_of(uint64_t thread) {
  PyObject* key = PyLong_FromUnsignedLongLong(thread);
  PyObject* track = key ? PyDict_GetItemWithError(gil.tracks, key) : NULL;
  Py_XINCREF(track);
  if (key && !track) {
    track = new_track(thread);
    keep_track(key, track);
  }
  Py_XDECREF(key);
  PyErr_Clear();
  return track;
}

static void write_wait(enum kind kind, const struct st_ended_wait* w) {
  PyObject* track = track_of(w->thread);
  if (track && track != Py_None && gil.templates[kind]) {
    PyObject* holder = w->holder ? st_thread_id_object(w->holder) : Py_None;
    const struct st_past_slice slice = {w->begin, w->end, {holder}, .count = 1};
    st_hooks.api->past_slice(gil.templates[kind], track, &slice);
  }
  Py_XDECREF(track);
}

/* Python code may run meanwhile, and other threads with it: so each wait is
 * taken before it is written. */
static void write_waits(void) {
  struct st_ended_wait w;
  for (enum kind kind = 0; kind < KINDS; kind++)
    while (gil.make_track && st_wait_ring_take(&rings[kind], &w))
      write_wait(kind, &w);
}

static bool has_waits(void) {
  return st_wait_ring_has_any(&rings[TAKE]) ||
         st_wait_ring_has_any(&rings[HAND_OVER]);
}

static void clear_rings(void) {
  for (enum kind kind = 0; kind < KINDS; kind++)
    st_wait_ring_clear(&rings[kind]);
}

static struct st_gil_thread writer = {.name = "stretto-gil",
                                      .pause_ms = ST_GIL_PAUSE_MS,
                                      .is_needed = has_waits,
                                      .work = write_waits};

/* --- Fork ---------------------------------------------------------------- */

/* The waits in the rings are those of the parent. */
static void forget(void) {
  st_gil_thread_forget(&writer);
  clear_rings();
  own.thread = 0;
}

static void initialize(void) {
  pthread_atfork(NULL, NULL, forget);
}

static void start_writer(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!gil.make_track)
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

/* The functions of the C library that wait, and ours. */
static const struct {
  const char* name;
  void *original, *observer;
} kWaits[KINDS] = {
    {"pthread_cond_timedwait", (void*)(uintptr_t)pthread_cond_timedwait,
     (void*)(uintptr_t)observed_take},
    {"pthread_cond_wait", (void*)(uintptr_t)pthread_cond_wait,
     (void*)(uintptr_t)observed_hand_over}};

static const char* find_import(enum kind kind, struct st_import* import) {
#ifdef Py_GIL_DISABLED
  (void)kind, (void)import;
  return "not in free-threaded builds";
#else
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    return "only in the main interpreter";
  return st_import_find(import, (const void*)(uintptr_t)PyEval_RestoreThread,
                        kWaits[kind].name, kWaits[kind].original);
#endif
}

static PyObject* problem(PyObject* Py_UNUSED(module),
                         PyObject* Py_UNUSED(unused)) {
  const char* text = NULL;
  struct st_import import;
  for (enum kind kind = 0; kind < KINDS && !gil.make_track && !text; kind++)
    text = find_import(kind, &import);
  return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static void restore(enum kind kind) {
  st_import_restore(&gil.imports[kind], kWaits[kind].observer);
}

/* Observes both functions; returns why that fails, or NULL. */
static const char* replace_both(void) {
  for (enum kind kind = 0; kind < KINDS; kind++) {
    const char* text = find_import(kind, &gil.imports[kind]);
    if (!text && !st_import_replace(&gil.imports[kind], kWaits[kind].observer))
      text = "the slot of the function can't be written";
    if (text && kind == HAND_OVER)
      restore(TAKE);
    if (text)
      return text;
  }
  return NULL;
}

/* Begins the recording; returns why that fails, or NULL. */
static const char* begin_recording(void) {
  conditions[TAKE] = st_python_gil_condition();
  conditions[HAND_OVER] = st_python_gil_switch_condition();
  clear_rings();
  const char* text = replace_both();
  if (text)
    return text;
  if (!++last_recording)
    ++last_recording;
  recording = last_recording;
  return NULL;
}

static PyObject* start(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *take, *hand_over, *make_track;
  if (!PyArg_ParseTuple(args, "OOO", &take, &hand_over, &make_track))
    return NULL;
  if (gil.make_track)
    Py_RETURN_NONE;
  if (!gil.tracks && !(gil.tracks = PyDict_New()))
    return NULL;
  const char* text = begin_recording();
  if (text)
    return PyUnicode_FromString(text);
  gil.templates[TAKE] = Py_NewRef(take);
  gil.templates[HAND_OVER] = Py_NewRef(hand_over);
  gil.make_track = Py_NewRef(make_track);
  start_writer();
  Py_RETURN_NONE;
}

static PyObject* stop(PyObject* Py_UNUSED(module),
                      PyObject* Py_UNUSED(unused)) {
  if (!gil.make_track)
    Py_RETURN_NONE;
  recording = 0;
  restore(TAKE);
  restore(HAND_OVER);
  Py_CLEAR(gil.make_track);
  Py_CLEAR(gil.templates[TAKE]);
  Py_CLEAR(gil.templates[HAND_OVER]);
  Py_CLEAR(gil.tracks);
  st_thread_ids_clear();
  st_gil_thread_stop(&writer);
  Py_RETURN_NONE;
}

static PyObject* write_all(PyObject* Py_UNUSED(module),
                           PyObject* Py_UNUSED(unused)) {
  uint64_t short_waits = 0, short_ns = 0, lost = 0;
  write_waits();
  for (enum kind kind = 0; kind < KINDS; kind++) {
    short_waits += atomic_exchange(&rings[kind].short_waits, 0);
    short_ns += atomic_exchange(&rings[kind].short_ns, 0);
    lost += atomic_exchange(&rings[kind].lost, 0);
  }
  return Py_BuildValue("(KKK)", (unsigned long long)short_waits,
                       (unsigned long long)short_ns, (unsigned long long)lost);
}

static PyMethodDef kFunctions[] = {
    {"start_gil_waits", start, METH_VARARGS,
     "start_gil_waits(take, hand_over, make_track)\n--\n\nRecord waits for the "
     "GIL, and for its hand-overs, as slices of two templates; return why that "
     "is impossible, or None."},
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
