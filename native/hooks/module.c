/* The extension module stretto._pyhooks: starts and stops the tracer. */
#include "hooks/around.h"
#include "hooks/auto_detail.h"
#include "hooks/backend.h"
#include "hooks/c_functions.h"
#include "hooks/call_stack.h"
#include "hooks/code_filter.h"
#include "hooks/code_records.h"
#include "hooks/collections.h"
#include "hooks/coroutine_bounds.h"
#include "hooks/fork_call.h"
#include "hooks/gil_waits.h"
#include "hooks/heap.h"
#include "hooks/held_collections.h"
#include "hooks/io_waits.h"
#include "hooks/lock_waits.h"
#include "hooks/look_times.h"
#include "hooks/loop_watch.h"
#include "hooks/manager_lives.h"
#include "hooks/object_graph.h"
#include "hooks/python_layout.h"
#include "hooks/sampler_totals.h"
#include "hooks/shared_totals.h"
#include "hooks/stack_sampler.h"
#include "hooks/task_lives.h"
#include "hooks/task_steps.h"
#include "hooks/tracer.h"

/* The default of the largest depth of traced calls.  Perfetto's trace processor
 * nests at most 512 slices on a track and shows deeper slices wrongly.  This
 * limit leaves room for the program's own slices. */
enum { DEFAULT_MAX_DEPTH = 400, MAX_MAX_DEPTH = 1 << 20 };

struct options {
  PyObject *category, *accepts, *arguments_of, *result_of;
  unsigned long long min_duration_ns;
  long max_depth;
  int c_functions, auto_detail, cpu;
  const char* threshold_file;
};

/* Whether auto detail was suspended, and may be resumed. */
static bool suspended;

static const struct st_track_event_api* find_api(void) {
  return PyCapsule_Import(ST_TRACK_EVENT_API, 0);
}

/* The type of the argument `category` is checked here, because the functions of
 * the capsule do not check it. */
static bool check_category(PyObject* category) {
  PyObject* module = PyImport_ImportModule("stretto._native");
  PyObject* type = module ? PyObject_GetAttrString(module, "Category") : NULL;
  Py_XDECREF(module);
  if (!type)
    return false;
  bool ok = Py_IS_TYPE(category, (PyTypeObject*)type);
  Py_DECREF(type);
  if (!ok)
    PyErr_Format(PyExc_TypeError,
                 "start() needs a stretto.Category, not %R: make one with "
                 "stretto.Category(name)",
                 (PyObject*)Py_TYPE(category));
  return ok;
}

/* Replaces None by NULL.  Returns false with an exception set if the option is
 * no function. */
static bool take_function(const char* name, PyObject** function) {
  if (*function == Py_None)
    *function = NULL;
  if (!*function || PyCallable_Check(*function))
    return true;
  PyErr_Format(PyExc_TypeError, "%s must be callable or None", name);
  return false;
}

static bool check_options(const struct options* o) {
  if (!check_category(o->category))
    return false;
  if ((o->arguments_of || o->result_of) &&
      (PY_VERSION_HEX < 0x030C0000 || o->auto_detail)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "arguments and results of calls need CPython 3.12 or "
                    "later, and --full or --ring: functions aren't recorded");
    return false;
  }
  if (o->max_depth < 1 || o->max_depth > MAX_MAX_DEPTH) {
    PyErr_Format(PyExc_ValueError, "max_depth must be from 1 to %d, not %ld",
                 MAX_MAX_DEPTH, o->max_depth);
    return false;
  }
  return true;
}

static bool parse_options(PyObject* args, PyObject* kwargs, struct options* o) {
  static char* names[] = {"category",
                          "accepts",
                          "min_duration_ns",
                          "max_depth",
                          "c_functions",
                          "auto_detail",
                          "threshold_file",
                          "arguments_of",
                          "result_of",
                          "cpu",
                          NULL};
  *o = (struct options){.max_depth = DEFAULT_MAX_DEPTH};
  return PyArg_ParseTupleAndKeywords(
             args, kwargs, "O|$OKlppzOOp:start", names, &o->category,
             &o->accepts, &o->min_duration_ns, &o->max_depth, &o->c_functions,
             &o->auto_detail, &o->threshold_file, &o->arguments_of,
             &o->result_of, &o->cpu) &&
         take_function("accepts", &o->accepts) &&
         take_function("arguments_of", &o->arguments_of) &&
         take_function("result_of", &o->result_of) && check_options(o);
}

static void use_options(const struct options* o) {
  Py_XSETREF(st_hooks.category, Py_NewRef(o->category));
  Py_XSETREF(st_hooks.accepts, Py_XNewRef(o->accepts));
  Py_XSETREF(st_hooks.arguments_of, Py_XNewRef(o->arguments_of));
  Py_XSETREF(st_hooks.result_of, Py_XNewRef(o->result_of));
  st_hooks.min_duration_ns = o->min_duration_ns;
  st_hooks.max_depth = (uint32_t)o->max_depth;
  st_hooks.c_functions = o->c_functions && !o->auto_detail;
  st_hooks.auto_detail = o->auto_detail;
  st_hooks.cpu = o->cpu;
  st_hooks.slow_calls = o->cpu || o->min_duration_ns || st_hooks.greenlets;
  st_hooks.some_foreign = false;
  st_hooks.in_new_child = false;
  st_hooks.counts = (struct st_hook_counts){0};
  st_hooks.generation++;
}

static PyObject* start(PyObject* Py_UNUSED(module), PyObject* args,
                       PyObject* kwargs) {
  struct options o;
  if (!parse_options(args, kwargs, &o))
    return NULL;
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    Py_RETURN_FALSE;
  if (st_hooks.running || suspended) {
    PyErr_SetString(PyExc_RuntimeError,
                    "function tracing runs already: stop() it first");
    return NULL;
  }
  if (!st_code_filter_start())
    return NULL;
  st_call_stacks_watch_forks();
  use_options(&o);
  st_hooks.running = true;
  if (o.auto_detail)
    st_auto_start(o.threshold_file);
  if (!st_backend_start()) {
    st_hooks.running = false;
    if (o.auto_detail)
      st_auto_stop();
    return NULL;
  }
  Py_RETURN_TRUE;
}

static void stop_backend(void) {
  st_call_stack_flush();
  st_backend_check();
  st_hooks.running = false;
  st_backend_stop();
}

static PyObject* suspend(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (st_hooks.running && st_hooks.auto_detail &&
      PyInterpreterState_Get() == PyInterpreterState_Main()) {
    stop_backend();
    st_auto_end_slices();
    suspended = true;
  }
  Py_RETURN_NONE;
}

static PyObject* resume(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (!suspended)
    Py_RETURN_NONE;
  suspended = false;
  st_hooks.running = true;
  st_sampler_forget_threads();
  st_auto_resume();
  if (st_backend_start())
    Py_RETURN_NONE;
  st_hooks.running = false;
  st_auto_stop();
  return NULL;
}

static PyObject* stop(PyObject* Py_UNUSED(module),
                      PyObject* Py_UNUSED(unused)) {
  if (!(st_hooks.running || suspended) ||
      PyInterpreterState_Get() != PyInterpreterState_Main())
    Py_RETURN_NONE;
  suspended = false;
  stop_backend();
  if (st_hooks.auto_detail)
    st_auto_stop();
  Py_CLEAR(st_hooks.accepts);
  Py_CLEAR(st_hooks.arguments_of);
  Py_CLEAR(st_hooks.result_of);
  st_c_names_clear();
  Py_RETURN_NONE;
}

static PyObject* follow_greenlets(PyObject* Py_UNUSED(module),
                                  PyObject* Py_UNUSED(greenlet)) {
  st_hooks.greenlets = st_hooks.slow_calls = true;
  Py_RETURN_NONE;
}

static PyObject* follows_greenlets(PyObject* Py_UNUSED(module),
                                   PyObject* Py_UNUSED(unused)) {
  return PyBool_FromLong(st_hooks.greenlets && st_hooks.running);
}

static PyObject* running(PyObject* Py_UNUSED(module),
                         PyObject* Py_UNUSED(unused)) {
  return PyBool_FromLong(st_hooks.running);
}

static PyObject* stats(PyObject* Py_UNUSED(module),
                       PyObject* Py_UNUSED(unused)) {
  if (st_hooks.running)
    st_backend_check();
  const struct st_hook_counts* c = &st_hooks.counts;
  return Py_BuildValue(
      "{sKsKsKsKsKsKsK}",                             //
      "too_deep", (unsigned long long)c->too_deep,    //
      "too_short", (unsigned long long)c->too_short,  //
      "unfinished", (unsigned long long)c->unfinished, "threads_replaced",
      (unsigned long long)c->threads_replaced, "threads_occupied",
      (unsigned long long)c->threads_occupied, "not_continued",
      (unsigned long long)c->not_continued, "without_record",
      (unsigned long long)c->without_record);
}

static PyObject* totals(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return st_auto_totals();
}

static PyObject* share_totals(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyLong_FromLong(st_totals_share());
}

static PyObject* publish_totals(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  st_auto_pause(); /* The last times of the threads are read then. */
  st_sampler_publish();
  if (st_hooks.running && st_hooks.auto_detail)
    st_auto_write_period();
  Py_RETURN_NONE;
}

static PyObject* looks(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  struct st_look_time times[ST_KEPT_LOOKS];
  int count = st_look_times(times);
  PyObject* list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    PyObject* item = Py_BuildValue("(KK)", (unsigned long long)times[i].begin,
                                   (unsigned long long)times[i].end);
    if (!item)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, item);
  }
  return list;
}

static PyObject* pause_sampling(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  st_auto_pause();
  Py_RETURN_NONE;
}

static PyObject* resume_sampling(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (st_hooks.running && st_hooks.auto_detail)
    st_auto_resume();
  Py_RETURN_NONE;
}

static PyObject* begin_in_child(PyObject* Py_UNUSED(module),
                                PyObject* Py_UNUSED(unused)) {
  if (!st_hooks.running)
    Py_RETURN_NONE;
  st_hooks.generation++;
  st_hooks.counts = (struct st_hook_counts){0};
  st_hooks.in_new_child = true;
  st_fork_call_note();
  if (st_hooks.auto_detail)
    st_auto_begin_in_child();
  Py_RETURN_NONE;
}

static PyObject* begin_sampling(PyObject* Py_UNUSED(module),
                                PyObject* Py_UNUSED(unused)) {
  if (st_hooks.running && st_hooks.auto_detail && st_hooks.in_new_child)
    st_auto_begin_sampling();
  Py_RETURN_NONE;
}

static PyObject* silence(PyObject* Py_UNUSED(module),
                         PyObject* Py_UNUSED(unused)) {
  if (!st_hooks.running)
    Py_RETURN_NONE;
  if (st_hooks.auto_detail)
    st_hooks.running = st_hooks.in_new_child = false;
  else
    st_backend_silence();
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
     "start(category, *, accepts=None, min_duration_ns=0, max_depth=400,\n"
     "      c_functions=False, auto_detail=False, threshold_file=None,\n"
     "      arguments_of=None, result_of=None, cpu=False)\n--\n\n"
     "Record every call as a slice of the category."},
    {"stop", stop, METH_NOARGS, "Stop recording calls."},
    {"suspend", suspend, METH_NOARGS,
     "End all slices of auto detail, and record nothing until resume()."},
    {"resume", resume, METH_NOARGS, "Continue to record after suspend()."},
    {"follow_greenlets", follow_greenlets, METH_O,
     "Follow the switches of threads between greenlets from now on.\n\n"
     "The argument, the module `greenlet`, is not used."},
    {"follows_greenlets", follows_greenlets, METH_NOARGS,
     "Return whether calls are recorded now, and switches of greenlets "
     "followed."},
    {"running", running, METH_NOARGS, "Return whether calls are recorded now."},
    {"stats", stats, METH_NOARGS,
     "Return counts since the last start: calls without a slice, by reason."},
    {"totals", totals, METH_NOARGS,
     "Return the counts and times of auto detail since its start, by function "
     "and in total."},
    {"share_totals", share_totals, METH_NOARGS,
     "Put the totals into memory, and return its descriptor."},
    {"publish_totals", publish_totals, METH_NOARGS,
     "Complete the totals in the memory, and write the sampling period."},
    {"looks", looks, METH_NOARGS,
     "Return (begin, end), in ns of CLOCK_BOOTTIME, of each of the last 1,023 "
     "looks at the stacks."},
    {"pause_sampling", pause_sampling, METH_NOARGS,
     "Stop the sampling before a fork."},
    {"resume_sampling", resume_sampling, METH_NOARGS,
     "Start the sampling again after a fork."},
    {"begin_in_child", begin_in_child, METH_NOARGS,
     "Drop the open calls in the child of a fork."},
    {"begin_sampling", begin_sampling, METH_NOARGS,
     "Start the sampling in the child of a fork, unless its first call does."},
    {"silence", silence, METH_NOARGS,
     "Stop the reports of calls at the end of the process."},
    {"gc_callback", st_collections_callback, METH_VARARGS,
     "gc_callback(category, thread_track)\n--\n\nReturn a callable for "
     "gc.callbacks: each run of the collector is a slice."},
    {NULL, NULL, 0, NULL}};

static int module_exec(PyObject* module) {
  if (!st_hooks.api)
    st_hooks.api = find_api();
  if (!st_hooks.api)
    return -1;
  if (PyModule_AddIntConstant(module, "DEFAULT_MAX_DEPTH", DEFAULT_MAX_DEPTH) <
          0 ||
      PyModule_AddIntConstant(module, "MAX_CODE_RECORDS", ST_MAX_CODE_RECORDS) <
          0 ||
      st_add_around(module) < 0 || st_add_task_lives(module) < 0 ||
      st_add_task_steps(module) < 0 || st_add_manager_lives(module) < 0 ||
      st_add_heap(module) < 0 || st_add_object_graph(module) < 0 ||
      st_add_coroutine_bounds(module) < 0 || st_add_lock_waits(module) < 0 ||
      st_add_loop_watch(module) < 0 || st_add_gil_waits(module) < 0 ||
      st_add_io_waits(module) < 0)
    return -1;
  st_held_collections_init();
  return st_backend_add(module);
}

static PyModuleDef_Slot kSlots[] = {{Py_mod_exec, module_exec},
#ifdef Py_mod_gil
                                    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
                                    {0, NULL}};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._pyhooks",
    .m_doc = "Hooks into the interpreter.",
    .m_methods = kFunctions,
    .m_slots = kSlots,
};

PyMODINIT_FUNC PyInit__pyhooks(void) {
  return PyModuleDef_Init(&kModule);
}
