#include "hooks/lives.h"

#include <stdlib.h>

#include "hooks/tracer.h"

static uint64_t threshold(const struct st_lives* lives) {
  return lives->table.every ? 0 : atomic_load(&st_hooks.threshold_ns);
}

static void free_life(struct st_life* life) {
  Py_XDECREF((PyObject*)life->object);
  Py_XDECREF((PyObject*)life->lane);
  Py_XDECREF((PyObject*)life->step);
  free(life);
}

static void free_lives(struct st_life* life) {
  for (struct st_life* next; life; life = next) {
    next = life->next;
    free_life(life);
  }
}

static void remove_life(struct st_lives* lives, struct st_life* life) {
  st_life_take(&lives->table, life);
  free_life(life);
}

bool st_lives_watch(struct st_lives* lives, PyObject* look, PyObject* end,
                    uint64_t lives_per_second, bool every) {
  if (lives->table.buckets)
    return true;
  if (!st_life_table_init(&lives->table, lives_per_second, every)) {
    PyErr_NoMemory();
    return false;
  }
  lives->look = Py_NewRef(look);
  lives->end = Py_NewRef(end);
  return true;
}

void st_lives_unwatch(struct st_lives* lives) {
  lives->too_short = lives->over_limit = 0;
  free_lives(st_life_take_all(&lives->table));
  Py_CLEAR(lives->look);
  Py_CLEAR(lives->end);
}

uint64_t st_lives_begin(struct st_lives* lives) {
  uint64_t now = lives->table.buckets ? st_hooks.api->now() : 0;
  if (now && st_life_may_add(&lives->table, now))
    return now;
  lives->over_limit++;
  return 0;
}

/* The life at the object's address may belong to an earlier object, which was
 * destroyed before its life ended.  Such a life is removed. */
struct st_life* st_lives_of(struct st_lives* lives, PyObject* object) {
  struct st_life* life = st_life_find(&lives->table, object);
  PyObject* reference = life ? PyWeakref_NewRef(object, NULL) : NULL;
  if (life && life->object != reference) {
    PyErr_Clear();
    remove_life(lives, life);
    life = NULL;
  }
  Py_XDECREF(reference);
  return life;
}

/* Returns a new reference to the object of a life, or to None. */
static PyObject* object_of(const struct st_life* life) {
  PyObject* object = PyObject_CallNoArgs(life->object);
  if (!object)
    PyErr_Clear();
  return object ? object : Py_NewRef(Py_None);
}

/* Removes the lives whose objects were destroyed.  Called before a full table
 * grows. */
static void drop_destroyed(struct st_lives* lives) {
  struct st_life_table* t = &lives->table;
  struct st_life* destroyed = NULL;
  for (size_t i = 0; i < t->size; i++) {
    for (struct st_life *l = t->buckets[i], *next; l; l = next) {
      next = l->next;
      PyObject* object = object_of(l);
      if (object == Py_None) {
        st_life_take(t, l);
        l->next = destroyed;
        destroyed = l;
      }
      Py_DECREF(object);
    }
  }
  free_lives(destroyed);
}

struct st_life* st_lives_add(struct st_lives* lives, PyObject* object,
                             uint64_t created) {
  struct st_life* life = st_lives_of(lives, object);
  if (life)
    return life;
  if (lives->table.count >= lives->table.size)
    drop_destroyed(lives);
  PyObject* reference = PyWeakref_NewRef(object, NULL);
  life = reference ? st_life_add(&lives->table, object, created) : NULL;
  if (life) {
    life->object = reference;
  } else {
    PyErr_Clear();
    Py_XDECREF(reference);
  }
  return life;
}

static void look(struct st_lives* lives, struct st_life* life, PyObject* object,
                 uint64_t now, bool resumes) {
  PyObject* function = Py_NewRef(lives->look);
  PyObject* lane = PyObject_CallFunction(
      function, "OOKKKKO", life->lane ? life->lane : Py_None, object,
      (unsigned long long)life->created, (unsigned long long)life->looked,
      (unsigned long long)life->suspended, (unsigned long long)now,
      resumes ? Py_True : Py_False);
  Py_DECREF(function);
  st_drop_error();
  st_life_looked(&lives->table, now, st_hooks.api->now());
  life = st_life_find(&lives->table, object);
  if (life && lane) {
    PyObject* old = life->lane;
    life->lane = Py_NewRef(lane);
    life->looked = now;
    Py_XDECREF(old);
  }
  Py_XDECREF(lane);
}

void st_lives_resume(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now) {
  if (!life->looked)
    life->looked = now;
  /* There is nothing to show before the first step. */
  if (life->suspended &&
      st_life_needs_look(&lives->table, life, threshold(lives), now))
    look(lives, life, object, now, true);
}

struct st_life* st_lives_suspend(struct st_lives* lives, PyObject* object,
                                 uint64_t now) {
  struct st_life* life = st_life_find(&lives->table, object);
  if (life)
    life->suspended = now;
  return life;
}

void st_lives_wait(struct st_lives* lives, struct st_life* life,
                   PyObject* object, uint64_t now) {
  if (lives->table.every)
    look(lives, life, object, now, false);
}

void st_lives_finish(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now) {
  PyObject* lane = Py_NewRef(life->lane ? life->lane : Py_None);
  uint64_t created = life->created;
  uint64_t looked = life->looked ? life->looked : created;
  remove_life(lives, life);
  if (lane == Py_None && now - created < threshold(lives)) {
    lives->too_short++;
  } else if (lane == Py_None && !st_life_may_add_lane(&lives->table, now)) {
    lives->over_limit++;
  } else if (lives->end) {
    PyObject* function = Py_NewRef(lives->end);
    Py_XDECREF(PyObject_CallFunction(
        function, "OOKKK", lane, object, (unsigned long long)created,
        (unsigned long long)looked, (unsigned long long)now));
    Py_DECREF(function);
    st_drop_error();
  }
  Py_DECREF(lane);
}

/* Returns the objects that are traced now, as a list. */
static PyObject* living_objects(const struct st_life_table* t) {
  PyObject* objects = PyList_New(0);
  for (size_t i = 0; objects && i < t->size; i++) {
    for (struct st_life* l = t->buckets[i]; l; l = l->next) {
      PyObject* object = object_of(l);
      if (object != Py_None && PyList_Append(objects, object) < 0)
        PyErr_Clear();
      Py_DECREF(object);
    }
  }
  return objects;
}

PyObject* st_lives_look_at_all(struct st_lives* lives) {
  PyObject* objects = living_objects(&lives->table);
  if (!objects)
    return NULL;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
    PyObject* object = PyList_GET_ITEM(objects, i);
    uint64_t now = st_hooks.api->now();
    struct st_life* life = st_life_find(&lives->table, object);
    if (life && st_life_needs_look(&lives->table, life, threshold(lives), now))
      look(lives, life, object, now, false);
  }
  Py_DECREF(objects);
  return Py_BuildValue("KKK", (unsigned long long)lives->too_short,
                       (unsigned long long)lives->over_limit,
                       (unsigned long long)lives->table.waits_left_out);
}
