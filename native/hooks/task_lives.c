#include "hooks/task_lives.h"

#include <pthread.h>

#include "hooks/attribute.h"
#include "hooks/coroutine_bounds.h"
#include "hooks/lives.h"
#include "hooks/tracer.h"

enum {
  TASKS_PER_SECOND = 5000,
  /* Searches take at most one part in this number of a thread's time, averaged
   * over a second, because a search visits all tasks of the event loop. */
  SEARCH_PAUSE = 50,
};

#define SECOND UINT64_C(1000000000)

static struct st_lives tasks;
static PyObject *on_failed, *find_tasks;
static uint64_t watched_since;

/* Eager tasks of this thread that were created without create_task(), so that
 * nothing has reported them: how many there may be, the time at which the first
 * of them was created, and the end of the step that created it, 0 if unknown.
 */
static _Thread_local struct {
  uint32_t count;
  uint64_t created, suspended;
  uint64_t next_search;
} unseen;

bool st_task_is_done(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("done");
  PyObject* done = name ? PyObject_CallMethodNoArgs(task, name) : NULL;
  Py_XDECREF(done);
  st_drop_error();
  return done == Py_True;
}

PyObject* st_task_failure(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("_exception");
  PyObject* error = name ? PyObject_GetAttr(task, name) : NULL;
  if (error == Py_None)
    Py_CLEAR(error);
  st_drop_error();
  return error;
}

/* Calls failed(exception) if an exception has ended the task. */
static void report_failure(PyObject* task) {
  PyObject* error = st_task_failure(task);
  if (error && on_failed) {
    PyObject* function = Py_NewRef(on_failed);
    Py_XDECREF(PyObject_CallOneArg(function, error));
    Py_DECREF(function);
  }
  Py_XDECREF(error);
  st_drop_error();
}

/* Ends the life of a task that is done. */
static void finish(struct st_life* life, PyObject* task, uint64_t now) {
  st_lives_finish(&tasks, life, task, now);
  report_failure(task);
}

/* Sets the times of a task whose first step has already run: an eager task, or
 * a task that is older than the recording.  Returns whether it is such a task.
 */
static bool note_earlier_step(struct st_life* life, PyObject* task) {
  PyObject* coroutine = PyObject_CallMethod(task, "get_coro", NULL);
  PyObject* suspended =
      coroutine ? PyObject_GetAttrString(coroutine, "cr_suspended") : NULL;
  bool has_run = suspended == Py_True;
  if (has_run) {
    life->looked = life->created;
    life->suspended = st_hooks.api->now();
  }
  Py_XDECREF(suspended);
  Py_XDECREF(coroutine);
  st_drop_error();
  return has_run;
}

/* Called before an eager task begins its first step: asyncio.Task calls
 * loop.is_running() then. */
static PyObject* eager_task_begins(PyObject* Py_UNUSED(module),
                                   PyObject* const* Py_UNUSED(args),
                                   Py_ssize_t Py_UNUSED(count),
                                   PyObject* Py_UNUSED(names)) {
  if (!unseen.count++) {
    unseen.created = st_hooks.api->now();
    unseen.suspended = 0;
  }
  Py_RETURN_NONE;
}

static void add_unseen(PyObject* task) {
  if (st_lives_of(&tasks, task) || !st_lives_begin(&tasks))
    return;
  bool earlier = unseen.created < watched_since;
  uint64_t created = earlier ? watched_since : unseen.created;
  struct st_life* life = st_lives_add(&tasks, task, created);
  if (life && note_earlier_step(life, task))
    life->suspended = unseen.suspended > created ? unseen.suspended : created;
}

/* Adds the tasks of the running event loop that have no life. */
static void search_unseen(void) {
  PyObject* function = Py_NewRef(find_tasks);
  PyObject* found = PyObject_CallNoArgs(function);
  Py_DECREF(function);
  PyObject* all = found ? PySequence_List(found) : NULL;
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); i++)
    add_unseen(PyList_GET_ITEM(all, i));
  Py_XDECREF(all);
  Py_XDECREF(found);
  st_drop_error();
  unseen.count = 0;
}

void st_task_search(uint64_t now) {
  if (ST_LIKELY(!unseen.count) || unseen.next_search > now + SECOND ||
      !find_tasks)
    return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  search_unseen();
  PyErr_Restore(type, value, traceback);
  uint64_t first = unseen.next_search > now ? unseen.next_search : now;
  unseen.next_search = first + SEARCH_PAUSE * (st_hooks.api->now() - now);
}

void st_task_search_after_step(uint64_t now) {
  if (unseen.count && !unseen.suspended)
    unseen.suspended = now;
  st_task_search(now);
}

PyObject* st_handle_owner(PyObject* handle) {
  static struct st_attribute callback_of = {.name = "_callback"};
  static struct st_attribute owner_of = {.name = "__self__"};
  PyObject* callback = st_attribute_of(&callback_of, handle);
  PyObject* self = NULL;
  if (callback && PyCFunction_Check(callback))
    self = Py_XNewRef(PyCFunction_GET_SELF(callback));
  else if (callback && !PyFunction_Check(callback))
    self = st_attribute_of(&owner_of, callback);
  Py_XDECREF(callback);
  return self;
}

PyObject* st_task_step_begins(PyObject* handle, uint64_t now) {
  PyObject* task = tasks.table.count ? st_handle_owner(handle) : NULL;
  struct st_life* life = task ? st_lives_of(&tasks, task) : NULL;
  PyErr_Clear();
  if (!life) {
    Py_XDECREF(task);
    return NULL;
  }
  st_lives_resume(&tasks, life, task, now);
  return task;
}

void st_task_step_ended(PyObject* task, uint64_t now) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  struct st_life* life = st_lives_suspend(&tasks, task, now);
  bool done = life && st_task_is_done(task);
  life = life ? st_life_find(&tasks.table, task) : NULL;
  if (life && done)
    finish(life, task, now);
  else if (life)
    st_lives_wait(&tasks, life, task, now);
  Py_DECREF(task);
  PyErr_Restore(type, value, traceback);
}

static PyObject* creation_begins(PyObject* Py_UNUSED(module),
                                 PyObject* const* Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count),
                                 PyObject* Py_UNUSED(names)) {
  uint64_t now = st_lives_begin(&tasks);
  if (!now)
    Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(now);
}

static PyObject* task_created(PyObject* Py_UNUSED(module),
                              PyObject* const* args, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "task_created(begin_ns, task)");
  uint64_t created = PyLong_AsUnsignedLongLong(args[0]);
  if (created == (uint64_t)-1 && PyErr_Occurred())
    return NULL;
  PyObject* task = args[1];
  struct st_life* life = NULL;
  if (task != Py_None)
    life = st_lives_add(&tasks, task, created);
  bool has_run = life && st_task_is_done(task);
  if (has_run && (life = st_life_find(&tasks.table, task)))
    finish(life, task, st_hooks.api->now());
  else if (life && !life->suspended)
    has_run = note_earlier_step(life, task);
  if (has_run && unseen.count)
    unseen.count--;
  Py_RETURN_NONE;
}

static PyObject* task_resumes(PyObject* Py_UNUSED(module), PyObject* task) {
  struct st_life* life = st_lives_of(&tasks, task);
  if (life)
    st_lives_resume(&tasks, life, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

static PyObject* task_suspends(PyObject* Py_UNUSED(module), PyObject* task) {
  uint64_t now = st_hooks.api->now();
  struct st_life* life =
      tasks.table.count ? st_lives_suspend(&tasks, task, now) : NULL;
  if (life)
    st_lives_wait(&tasks, life, task, now);
  Py_RETURN_NONE;
}

static PyObject* task_exits(PyObject* Py_UNUSED(module), PyObject* task) {
  struct st_life* life = st_lives_of(&tasks, task);
  if (life)
    st_lives_finish(&tasks, life, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

/* In the child of a fork: the parent writes the numbers of its tasks. */
static void forget_numbers(void) {
  tasks.too_short = tasks.over_limit = tasks.table.waits_left_out = 0;
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, forget_numbers);
}

static PyObject* watch_tasks(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *look, *end, *failed, *find;
  int every;
  if (!PyArg_ParseTuple(args, "OOOOp:watch_tasks", &look, &end, &failed, &find,
                        &every))
    return NULL;
  if (look == Py_None) {
    st_lives_unwatch(&tasks);
    st_coroutine_bounds_stop();
    Py_CLEAR(on_failed);
    Py_CLEAR(find_tasks);
    Py_RETURN_NONE;
  }
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  if (!st_coroutine_bounds_start() ||
      !st_lives_watch(&tasks, look, end, TASKS_PER_SECOND, every))
    return NULL;
  watched_since = st_hooks.api->now();
  Py_XSETREF(on_failed, Py_NewRef(failed));
  Py_XSETREF(find_tasks, Py_NewRef(find));
  Py_RETURN_NONE;
}

static PyObject* look_at_tasks(PyObject* Py_UNUSED(module),
                               PyObject* Py_UNUSED(unused)) {
  return st_lives_look_at_all(&tasks);
}

static PyMethodDef kFunctions[] = {
    {"watch_tasks", watch_tasks, METH_VARARGS, NULL},
    {"look_at_tasks", look_at_tasks, METH_NOARGS, NULL},
    {"creation_begins", (PyCFunction)(void (*)(void))creation_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"eager_task_begins", (PyCFunction)(void (*)(void))eager_task_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"task_created", (PyCFunction)(void (*)(void))task_created, METH_FASTCALL,
     NULL},
    {"task_resumes", task_resumes, METH_O, NULL},
    {"task_suspends", task_suspends, METH_O, NULL},
    {"task_exits", task_exits, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

int st_add_task_lives(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
