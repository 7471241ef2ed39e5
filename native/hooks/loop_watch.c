#include "hooks/loop_watch.h"

#include <pthread.h>

#include "hooks/gil_thread.h"
#include "hooks/tracer.h"

/* An iteration of a loop. */
struct entry {
  unsigned long thread; /* 0 if the entry is free. */
  /* When the running callback has begun; 0 if none runs. */
  _Atomic uint64_t begin;
  PyObject* handle; /* That of the running callback; a borrowed reference. */
  _Atomic bool reported; /* Whether on_blocked() was called for the callback. */
  uint64_t first, last;
  bool has_lag;        /* Whether it is an iteration, not a single callback. */
  struct entry* outer; /* That in which it runs, if a loop runs in a loop. */
};

static struct {
  uint64_t limit_ns; /* 0 while nothing is watched. */
  PyObject *on_loop, *on_blocked, *on_end, *on_lag;
  struct entry entries[ST_LOOPS];
} loops;

/* The callback for which the native thread calls on_blocked().  The program may
 * run meanwhile, and the callback may end: its end must be told later. */
static struct {
  const struct entry* entry; /* NULL if there is none, or if it has ended. */
  uint64_t end;              /* 0 while it has not ended. */
} reporting;

/* The innermost entry of this thread, and its longest lag in this period. */
static _Thread_local struct entry* current;
static _Thread_local bool is_known;
static _Thread_local struct { uint64_t since, first, last; } longest;

static void call(PyObject* function, PyObject* arguments) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* kept = Py_XNewRef(function);
  if (kept && arguments)
    Py_XDECREF(PyObject_CallObject(kept, arguments));
  Py_XDECREF(arguments);
  Py_XDECREF(kept);
  st_drop_error();
  PyErr_Restore(type, value, traceback);
}

/* --- Entries ------------------------------------------------------------- */

static struct entry* claim(bool has_lag) {
  for (int i = 0; i < ST_LOOPS; i++) {
    struct entry* e = &loops.entries[i];
    if (e->thread)
      continue;
    *e = (struct entry){.thread = PyThread_get_thread_ident(),
                        .has_lag = has_lag,
                        .outer = current};
    if (!is_known)
      call(loops.on_loop, Py_BuildValue("(k)", e->thread));
    is_known = true;
    return current = e;
  }
  return NULL;
}

static void release(struct entry* e) {
  current = e->outer;
  e->thread = 0;
}

static void note_lag(const struct entry* e) {
  uint64_t lag = e->last - e->first;
  if (lag >= longest.last - longest.first) {
    longest.first = e->first;
    longest.last = e->last;
  }
  if (lag < ST_LONG_LAG_NS && e->last - longest.since < ST_LAG_PERIOD_NS)
    return;
  call(loops.on_lag, Py_BuildValue("(KK)", (unsigned long long)longest.first,
                                   (unsigned long long)longest.last));
  longest.since = e->last;
  longest.first = longest.last = 0;
}

/* --- Observers ----------------------------------------------------------- */

static PyObject* iteration_begins(PyObject* Py_UNUSED(module),
                                  PyObject* const* Py_UNUSED(args),
                                  Py_ssize_t Py_UNUSED(count),
                                  PyObject* Py_UNUSED(names)) {
  if (loops.limit_ns && claim(true))
    Py_RETURN_TRUE;
  Py_RETURN_NONE;
}

static PyObject* iteration_ended(PyObject* Py_UNUSED(module),
                                 PyObject* const* Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count)) {
  struct entry* e = current;
  if (e && e->has_lag) {
    if (e->last && loops.limit_ns)
      note_lag(e);
    release(e);
  }
  Py_RETURN_NONE;
}

static PyObject* callback_begins(PyObject* Py_UNUSED(module),
                                 PyObject* const* args, Py_ssize_t count,
                                 PyObject* Py_UNUSED(names)) {
  if (!loops.limit_ns || !count)
    Py_RETURN_NONE;
  struct entry* e = current ? current : claim(false);
  if (!e || e->begin)
    Py_RETURN_NONE;
  uint64_t now = st_hooks.api->now();
  if (!e->first)
    e->first = now;
  e->handle = args[0];
  e->reported = false;
  e->begin = now;
  Py_RETURN_TRUE;
}

static void tell_end(unsigned long thread, uint64_t begin, uint64_t end,
                     PyObject* handle, bool is_reported) {
  call(loops.on_end, Py_BuildValue("(kKKOO)", thread, (unsigned long long)begin,
                                   (unsigned long long)end, handle,
                                   is_reported ? Py_True : Py_False));
}

static PyObject* callback_ended(PyObject* Py_UNUSED(module),
                                PyObject* const* Py_UNUSED(args),
                                Py_ssize_t Py_UNUSED(count)) {
  struct entry* e = current;
  if (!e || !e->begin)
    Py_RETURN_NONE;
  uint64_t begin = e->begin;
  e->last = st_hooks.api->now();
  e->begin = 0;
  if (reporting.entry == e) {
    reporting.entry = NULL;
    reporting.end = e->last;
  } else if (e->reported ||
             (loops.limit_ns && e->last - begin >= loops.limit_ns)) {
    tell_end(e->thread, begin, e->last, e->handle, e->reported);
  }
  if (!e->has_lag)
    release(e);
  Py_RETURN_NONE;
}

/* --- The thread ---------------------------------------------------------- */

static bool is_blocked(const struct entry* e, uint64_t now) {
  uint64_t begin = e->begin;
  return begin && !e->reported && now > begin && now - begin >= loops.limit_ns;
}

static bool some_blocked(void) {
  uint64_t now = st_hooks.api->now();
  for (int i = 0; i < ST_LOOPS; i++)
    if (is_blocked(&loops.entries[i], now))
      return true;
  return false;
}

static void report_entry(struct entry* e) {
  unsigned long thread = e->thread;
  uint64_t begin = e->begin;
  PyObject* handle = Py_NewRef(e->handle);
  e->reported = true;
  reporting.entry = e;
  reporting.end = 0;
  call(loops.on_blocked,
       Py_BuildValue("(kKO)", thread, (unsigned long long)begin, handle));
  reporting.entry = NULL;
  if (reporting.end)
    tell_end(thread, begin, reporting.end, handle, true);
  Py_DECREF(handle);
}

static void report(void) {
  uint64_t now = st_hooks.api->now();
  for (int i = 0; i < ST_LOOPS; i++) {
    struct entry* e = &loops.entries[i];
    if (loops.limit_ns && e->thread && is_blocked(e, now))
      report_entry(e);
  }
}

static struct st_gil_thread watcher = {.name = "stretto-loops",
                                       .pause_ms = ST_LOOP_PAUSE_MS,
                                       .is_needed = some_blocked,
                                       .work = report};

/* In the child of a fork only the forking thread is left, with its entries. */
static void forget(void) {
  st_gil_thread_forget(&watcher);
  reporting.entry = NULL;
  unsigned long own = PyThread_get_thread_ident();
  for (int i = 0; i < ST_LOOPS; i++)
    if (loops.entries[i].thread != own)
      loops.entries[i] = (struct entry){0};
}

static void initialize(void) {
  pthread_atfork(NULL, NULL, forget);
}

static void start_thread(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!loops.limit_ns)
    return;
  pthread_once(&once, initialize);
  st_gil_thread_start(&watcher);
}

/* --- Start and stop ------------------------------------------------------ */

static PyObject* watch_loops(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long limit;
  PyObject *on_loop, *on_blocked, *on_end, *on_lag;
  if (!PyArg_ParseTuple(args, "KOOOO:watch_loops", &limit, &on_loop,
                        &on_blocked, &on_end, &on_lag))
    return NULL;
  loops.limit_ns = limit;
  Py_XSETREF(loops.on_loop, Py_NewRef(on_loop));
  Py_XSETREF(loops.on_blocked, Py_NewRef(on_blocked));
  Py_XSETREF(loops.on_end, Py_NewRef(on_end));
  Py_XSETREF(loops.on_lag, Py_NewRef(on_lag));
  start_thread();
  Py_RETURN_NONE;
}

/* The functions stay: a callback that was reported has its end told. */
static PyObject* unwatch_loops(PyObject* Py_UNUSED(module),
                               PyObject* Py_UNUSED(unused)) {
  loops.limit_ns = 0;
  st_gil_thread_stop(&watcher);
  Py_RETURN_NONE;
}

static PyObject* pause_loop_watch(PyObject* Py_UNUSED(module),
                                  PyObject* Py_UNUSED(unused)) {
  st_gil_thread_stop(&watcher);
  Py_RETURN_NONE;
}

static PyObject* resume_loop_watch(PyObject* Py_UNUSED(module),
                                   PyObject* Py_UNUSED(unused)) {
  start_thread();
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"watch_loops", watch_loops, METH_VARARGS,
     "watch_loops(limit_ns, on_loop, on_blocked, on_end, on_lag)\n--\n\nReport "
     "the lag of event loops, and callbacks that block them."},
    {"unwatch_loops", unwatch_loops, METH_NOARGS, "Stop these reports."},
    {"pause_loop_watch", pause_loop_watch, METH_NOARGS,
     "Stop the thread that looks at the loops, before a fork."},
    {"resume_loop_watch", resume_loop_watch, METH_NOARGS,
     "Start the thread again, if loops are watched."},
    {"loop_iteration_begins", (PyCFunction)(void (*)(void))iteration_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"loop_iteration_ended", (PyCFunction)(void (*)(void))iteration_ended,
     METH_FASTCALL, NULL},
    {"loop_callback_begins", (PyCFunction)(void (*)(void))callback_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"loop_callback_ended", (PyCFunction)(void (*)(void))callback_ended,
     METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

int st_add_loop_watch(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
