#include "hooks/task_lives.h"

#include "core/identity_cache.h"
#include "hooks/tracer.h"

enum {
  LIVES_PER_SECOND = 5000,
  LANES_PER_SECOND = 250,
  SECOND_NS = 1000000000,
  MIN_BUCKETS = 256
};
/* The time between two looks at a task that never waits long. */
static const uint64_t kLookPeriodNs = 1000000;

struct life {
  struct life* next;
  PyObject* key;  /* The address of the task; only compared. */
  PyObject* task; /* A weak reference. */
  PyObject* lane; /* NULL until the first look at the task. */
  uint64_t created, suspended, looked;
};

static struct {
  struct life** buckets; /* NULL while no tasks are watched. */
  size_t size, count;
  PyObject *look, *end, *failed;
  bool every; /* Whether each task has a lane. */
  /* The earliest times of the next life and of the next lane, see may_add(). */
  uint64_t next_life_ns, next_lane_ns;
  uint64_t short_tasks, tasks_over_limit;
} lives;

static uint64_t threshold(void) {
  return lives.every ? 0 : atomic_load(&st_hooks.threshold_ns);
}

static struct life** bucket_of(const PyObject* task) {
  return &lives.buckets[st_identity_hash(task) & (lives.size - 1)];
}

static struct life* find(const PyObject* task) {
  struct life* l = lives.buckets ? *bucket_of(task) : NULL;
  while (l && l->key != task)
    l = l->next;
  return l;
}

static void free_life(struct life* l) {
  Py_XDECREF(l->task);
  Py_XDECREF(l->lane);
  PyMem_RawFree(l);
}

static void remove_life(struct life* l) {
  struct life** at = bucket_of(l->key);
  while (*at != l)
    at = &(*at)->next;
  *at = l->next;
  lives.count--;
  free_life(l);
}

static bool resize(size_t size) {
  struct life** old = lives.buckets;
  size_t old_size = lives.size;
  struct life** buckets = PyMem_RawCalloc(size, sizeof *buckets);
  if (!buckets)
    return false;
  lives.buckets = buckets;
  lives.size = size;
  for (size_t i = 0; old && i < old_size; i++) {
    for (struct life *l = old[i], *next; l; l = next) {
      next = l->next;
      struct life** at = bucket_of(l->key);
      l->next = *at;
      *at = l;
    }
  }
  PyMem_RawFree(old);
  return true;
}

/* Returns the new life of a task; NULL when out of memory, or if the task does
 * not support weak references. */
static struct life* add_life(PyObject* task, uint64_t created) {
  if (!lives.buckets || (lives.count >= lives.size && !resize(2 * lives.size)))
    return NULL;
  PyObject* reference = PyWeakref_NewRef(task, NULL);
  struct life* l = reference ? PyMem_RawCalloc(1, sizeof *l) : NULL;
  if (!l) {
    PyErr_Clear();
    Py_XDECREF(reference);
    return NULL;
  }
  struct life** at = bucket_of(task);
  *l = (struct life){
      .next = *at, .key = task, .task = reference, .created = created};
  *at = l;
  lives.count++;
  return l;
}

/* Returns the life of a task; NULL if it has none.  The life that is found by
 * the task's address may be that of an earlier task, which was destroyed before
 * it was done.  Such a life is dropped. */
static struct life* life_of(PyObject* task) {
  struct life* l = find(task);
  PyObject* reference = l ? PyWeakref_NewRef(task, NULL) : NULL;
  if (l && l->task != reference) {
    PyErr_Clear();
    remove_life(l);
    l = NULL;
  }
  Py_XDECREF(reference);
  return l;
}

/* Whether the rate of new lives or lanes is below the limit.  `next` is the
 * time from which one more is allowed.  Each new one moves `next` forward by
 * 1 s / per_second.  `next` is never more than a second in the past.  So after
 * a quiet second, `per_second` new ones are allowed at once. */
static bool may_add(uint64_t* next, uint64_t per_second, uint64_t now) {
  if (lives.every)
    return true;
  if (*next + SECOND_NS < now)
    *next = now - SECOND_NS;
  if (*next > now)
    return false;
  *next += SECOND_NS / per_second;
  return true;
}

static bool may_add_lane(uint64_t now) {
  return may_add(&lives.next_lane_ns, LANES_PER_SECOND, now);
}

static bool needs_look(const struct life* l, uint64_t now) {
  uint64_t least = threshold();
  if (now - l->created < least)
    return false;
  if (!l->lane)
    return may_add_lane(now);
  return now - l->suspended >= least || now - l->looked >= kLookPeriodNs;
}

static void look(struct life* l, PyObject* task, uint64_t now, bool resumes) {
  PyObject* function = Py_NewRef(lives.look);
  PyObject* lane = PyObject_CallFunction(
      function, "OOKKKKO", l->lane ? l->lane : Py_None, task,
      (unsigned long long)l->created, (unsigned long long)l->looked,
      (unsigned long long)l->suspended, (unsigned long long)now,
      resumes ? Py_True : Py_False);
  Py_DECREF(function);
  st_drop_error();
  l = find(task);
  if (l && lane) {
    Py_XSETREF(l->lane, Py_NewRef(lane));
    l->looked = now;
  }
  Py_XDECREF(lane);
}

static bool is_done(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("done");
  PyObject* done = name ? PyObject_CallMethodNoArgs(task, name) : NULL;
  Py_XDECREF(done);
  st_drop_error();
  return done == Py_True;
}

/* Calls failed(exception) if an exception has ended the task.  The attribute is
 * read, because task.exception() would mark the exception as retrieved. */
static void report_failure(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("_exception");
  PyObject* error = name ? PyObject_GetAttr(task, name) : NULL;
  if (error && error != Py_None && lives.failed) {
    PyObject* function = Py_NewRef(lives.failed);
    Py_XDECREF(PyObject_CallOneArg(function, error));
    Py_DECREF(function);
  }
  Py_XDECREF(error);
  st_drop_error();
}

/* Removes the life of a task that is done. */
static void finish(struct life* l, PyObject* task, uint64_t now) {
  PyObject* lane = Py_NewRef(l->lane ? l->lane : Py_None);
  uint64_t created = l->created, looked = l->looked ? l->looked : created;
  remove_life(l);
  if (lane == Py_None && now - created < threshold()) {
    lives.short_tasks++;
  } else if (lane == Py_None && !may_add_lane(now)) {
    lives.tasks_over_limit++;
  } else {
    PyObject* function = Py_NewRef(lives.end);
    Py_XDECREF(PyObject_CallFunction(
        function, "OOKKK", lane, task, (unsigned long long)created,
        (unsigned long long)looked, (unsigned long long)now));
    Py_DECREF(function);
    st_drop_error();
  }
  Py_DECREF(lane);
  report_failure(task);
}

/* Returns the object whose method the handle calls.  Returns NULL, perhaps with
 * an exception set, if the handle calls a function. */
static PyObject* self_of(PyObject* handle) {
  static PyObject *callback_name, *self_name;
  if (!callback_name)
    callback_name = PyUnicode_InternFromString("_callback");
  if (!self_name)
    self_name = PyUnicode_InternFromString("__self__");
  PyObject* callback = PyObject_GetAttr(handle, callback_name);
  PyObject* self = NULL;
  if (callback && PyCFunction_Check(callback))
    self = Py_XNewRef(PyCFunction_GET_SELF(callback));
  else if (callback && !PyFunction_Check(callback))
    self = PyObject_GetAttr(callback, self_name);
  Py_XDECREF(callback);
  return self;
}

PyObject* st_task_step_begins(PyObject* handle, uint64_t now) {
  PyObject* task = lives.count ? self_of(handle) : NULL;
  struct life* l = task ? life_of(task) : NULL;
  PyErr_Clear();
  if (!l) {
    Py_XDECREF(task);
    return NULL;
  }
  if (!l->looked)
    l->looked = now;
  if (needs_look(l, now))
    look(l, task, now, true);
  return task;
}

void st_task_step_ended(PyObject* task, uint64_t now) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  struct life* l = find(task);
  if (l)
    l->suspended = now;
  if (l && is_done(task) && (l = find(task)))
    finish(l, task, now);
  Py_DECREF(task);
  PyErr_Restore(type, value, traceback);
}

static PyObject* creation_begins(PyObject* Py_UNUSED(module),
                                 PyObject* const* Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count),
                                 PyObject* Py_UNUSED(names)) {
  uint64_t now = lives.buckets ? st_hooks.api->now() : 0;
  if (now && may_add(&lives.next_life_ns, LIVES_PER_SECOND, now))
    return PyLong_FromUnsignedLongLong(now);
  lives.tasks_over_limit++;
  Py_RETURN_NONE;
}

static PyObject* task_created(PyObject* Py_UNUSED(module),
                              PyObject* const* args, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "task_created(begin_ns, task)");
  uint64_t created = PyLong_AsUnsignedLongLong(args[0]);
  if (created == (uint64_t)-1 && PyErr_Occurred())
    return NULL;
  PyObject* task = args[1];
  struct life* l = life_of(task);
  if (!l && task != Py_None)
    l = add_life(task, created);
  /* The first step of an eager task has run already. */
  if (l && is_done(task) && (l = find(task)))
    finish(l, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

static PyObject* unwatch(void) {
  struct life** buckets = lives.buckets;
  size_t size = lives.size;
  lives.buckets = NULL;
  lives.size = lives.count = 0;
  lives.short_tasks = lives.tasks_over_limit = 0;
  for (size_t i = 0; buckets && i < size; i++) {
    for (struct life *l = buckets[i], *next; l; l = next) {
      next = l->next;
      free_life(l);
    }
  }
  PyMem_RawFree(buckets);
  Py_CLEAR(lives.look);
  Py_CLEAR(lives.end);
  Py_CLEAR(lives.failed);
  Py_RETURN_NONE;
}

static PyObject* watch_tasks(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *look, *end, *failed;
  int every;
  if (!PyArg_ParseTuple(args, "OOOp:watch_tasks", &look, &end, &failed, &every))
    return NULL;
  if (look == Py_None)
    return unwatch();
  if (lives.buckets)
    Py_RETURN_NONE;
  if (!resize(MIN_BUCKETS))
    return PyErr_NoMemory();
  lives.look = Py_NewRef(look);
  lives.end = Py_NewRef(end);
  lives.failed = Py_NewRef(failed);
  lives.every = every;
  Py_RETURN_NONE;
}

/* Returns the tasks that are not done, as a list. */
static PyObject* living_tasks(void) {
  PyObject* tasks = PyList_New(0);
  for (size_t i = 0; tasks && i < lives.size; i++) {
    for (struct life* l = lives.buckets[i]; l; l = l->next) {
      PyObject* task = PyObject_CallNoArgs(l->task);
      if (!task || (task != Py_None && PyList_Append(tasks, task) < 0))
        PyErr_Clear();
      Py_XDECREF(task);
    }
  }
  return tasks;
}

static PyObject* look_at_tasks(PyObject* Py_UNUSED(module),
                               PyObject* Py_UNUSED(unused)) {
  PyObject* tasks = living_tasks();
  if (!tasks)
    return NULL;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tasks); i++) {
    PyObject* task = PyList_GET_ITEM(tasks, i);
    uint64_t now = st_hooks.api->now();
    struct life* l = find(task);
    if (l && needs_look(l, now))
      look(l, task, now, false);
  }
  Py_DECREF(tasks);
  return Py_BuildValue("KK", (unsigned long long)lives.short_tasks,
                       (unsigned long long)lives.tasks_over_limit);
}

static PyMethodDef kFunctions[] = {
    {"watch_tasks", watch_tasks, METH_VARARGS, NULL},
    {"look_at_tasks", look_at_tasks, METH_NOARGS, NULL},
    {"creation_begins", (PyCFunction)(void (*)(void))creation_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"task_created", (PyCFunction)(void (*)(void))task_created, METH_FASTCALL,
     NULL},
    {NULL, NULL, 0, NULL}};

int st_add_task_lives(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
