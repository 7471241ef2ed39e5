/* Thread states: who is tracing, and where its sequences are. */
#include "bind/common/handler_errors.h"
#include "bind/common/own_work.h"
#include "bind/track_event/call_cache.h"
#include "bind/track_event/track_event.h"
#include "core/setters.h"

#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct thread_state* st_thread;

static _Thread_local bool making; /* within thread_state_get */
static struct thread_state* all_threads;
static _Atomic uint32_t dead_threads;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

/* (name as known) -> (uuid, descriptor, name), or None: still so called */
static PyObject* describe_thread_hook;
static PyObject* current_track_hook; /* () -> Track | None */
static PyObject* current_task; /* () -> Task | None, raises RuntimeError */

void thread_state_set_hooks(PyObject* describe_thread,
                            PyObject* current_track) {
  Py_XINCREF(describe_thread);
  Py_XINCREF(current_track);
  Py_XSETREF(describe_thread_hook, describe_thread);
  Py_XSETREF(current_track_hook, current_track);
  Py_CLEAR(current_task);
}

void thread_state_set_current_task(PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(current_task, function);
}

/* ---- sequences ---- */

static void identity_cache_free(struct st_identity_cache* c) {
  for (uint32_t i = 0; c->slots && i <= c->mask; i++)
    Py_XDECREF(c->slots[i].key);
  st_identity_destroy(c);
}

/* The part that needs no GIL: chunk, ids, native memory. */
static void sequence_close(struct thread_sequence* s) {
  if (!s->core.writer.arbiter)
    return;
  st_sequence_destroy(&s->core);
  s->core.writer.arbiter = NULL;
}

/* Takes the sequence from its thread and closes it; what is left to do may
 * run Python (sequence_free). */
static struct thread_sequence* sequence_detach(struct thread_state* t,
                                               int slot) {
  struct thread_sequence* s = t->sequences[slot];
  t->sequences[slot] = NULL;
  if (s)
    sequence_close(s);
  return s;
}

static void sequence_free(struct thread_sequence* s) {
  if (!s)
    return;
  struct instance* instance = &st_instances[s->slot];
  if (instance->generation == s->generation) {
    instance->events_written += s->core.events_written;
    instance->events_lost += s->core.events_lost;
  }
  identity_cache_free(&s->names);
  identity_cache_free(&s->argument_names);
  identity_cache_free(&s->codes);
  identity_cache_free(&s->locations);
  call_cache_free(s->calls);
  template_cache_free(s->templates);
  for (int i = 0; i < KEYWORD_ENTRIES; i++)
    Py_XDECREF(s->keywords[i].names);
  PyMem_RawFree(s->categories);
  Py_XDECREF(s->arbiter);
  PyMem_RawFree(s);
}

/* Freeing may run Python, which has to wait until the event is written. */
static void free_later(struct thread_sequence** list,
                       struct thread_sequence* s) {
  if (!s)
    return;
  s->next = *list;
  *list = s;
}

static void free_all(struct thread_sequence** list) {
  while (*list) {
    struct thread_sequence* s = *list;
    *list = s->next;
    sequence_free(s);
  }
}

struct thread_sequence* thread_sequence_get(struct thread_state* t, int slot) {
  struct instance* instance = &st_instances[slot];
  struct thread_sequence* s = t->sequences[slot];
  if (s && s->generation == instance->generation && instance->active)
    return s;
  free_later(&t->done, sequence_detach(t, slot));
  if (!instance->active)
    return NULL;
  s = PyMem_RawCalloc(1, sizeof *s);
  if (!s)
    return NULL;
  if (!st_sequence_init(&s->core, instance->arbiter, instance->target_buffer,
                        instance->policy, &t->track)) {
    PyMem_RawFree(s);
    instance->events_lost++;
    return NULL;
  }
  s->arbiter = Py_NewRef(instance->arbiter_object);
  s->slot = slot;
  s->generation = instance->generation;
  t->sequences[slot] = s;
  return s;
}

/* ---- birth and death ---- */

/* Runs on the dying thread, possibly without the GIL. */
static void on_thread_exit(void* value) {
  struct thread_state* t = value;
  st_thread = NULL;
  pthread_mutex_lock(&t->lock);
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      sequence_close(t->sequences[slot]);
  }
  pthread_mutex_unlock(&t->lock);
  atomic_store(&t->dead, true);
  atomic_fetch_add(&dead_threads, 1);
}

static void make_exit_key(void) {
  pthread_key_create(&exit_key, on_thread_exit);
}

static void unlink_state(struct thread_state* t) {
  if (t->prev)
    t->prev->next = t->next;
  if (t->next)
    t->next->prev = t->prev;
  if (all_threads == t)
    all_threads = t->next;
}

/* One that is in no list any more: this may run Python, and so change it. */
static void thread_state_free(struct thread_state* t) {
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    free_later(&t->done, sequence_detach(t, slot));
  thread_state_release_discarded(t);
  for (int i = 0; i < TASK_TRACKS; i++) {
    Py_XDECREF(t->tasks[i].task);
    Py_XDECREF(t->tasks[i].track);
  }
  Py_XDECREF(t->task_track);
  Py_XDECREF(t->name);
  PyMem_RawFree(t->descriptor);
  PyMem_RawFree(t->scratch.data);
  PyMem_RawFree(t->interned.data);
  pthread_mutex_destroy(&t->lock);
  PyMem_RawFree(t);
}

void thread_states_reap(void) {
  if (atomic_load(&dead_threads) == 0)
    return;
  struct thread_state* dead = NULL;
  for (struct thread_state *t = all_threads, *next; t; t = next) {
    next = t->next;
    if (!atomic_load(&t->dead))
      continue;
    atomic_fetch_sub(&dead_threads, 1);
    unlink_state(t);
    t->next = dead;
    dead = t;
  }
  while (dead) {
    struct thread_state* t = dead;
    dead = t->next;
    thread_state_free(t);
  }
}

/* Takes the descriptor that Python made; false with an error set. */
static bool use_description(struct thread_state* t, PyObject* description) {
  PyObject *bytes, *name;
  unsigned long long uuid;
  if (!PyArg_ParseTuple(description, "KSU", &uuid, &bytes, &name))
    return false;
  size_t size = (size_t)PyBytes_Size(bytes);
  uint8_t* copy = PyMem_RawMalloc(size + 1);
  if (!copy)
    return false;
  memcpy(copy, PyBytes_AsString(bytes), size);
  PyMem_RawFree(t->descriptor);
  t->descriptor = copy;
  t->track = (struct st_track){uuid, copy, size, &st_process_track};
  Py_INCREF(name);
  discard_later(t, t->name);
  t->name = name;
  return true;
}

/* Without Python's help: the kernel's ids, no name. */
static bool describe_plainly(struct thread_state* t) {
  uint64_t tid = (uint64_t)syscall(SYS_gettid);
  uint64_t uuid = tid ^ st_process_track.uuid;
  uint8_t thread[24], *p;
  uint8_t* e = st_thread_descriptor_put_pid(thread, getpid());
  e = st_thread_descriptor_put_tid(e, (int64_t)tid);
  t->descriptor = PyMem_RawMalloc(64);
  if (!t->descriptor)
    return false;
  p = st_track_descriptor_put_uuid(t->descriptor, uuid);
  p = st_track_descriptor_put_parent_uuid(p, st_process_track.uuid);
  p = st_track_descriptor_put_thread(p, thread, (size_t)(e - thread));
  t->track = (struct st_track){uuid, t->descriptor, (size_t)(p - t->descriptor),
                               &st_process_track};
  return true;
}

/* False: there is no description, or no newer one. */
static bool describe_by_hook(struct thread_state* t) {
  if (!describe_thread_hook)
    return false;
  PyObject* known = t->name ? t->name : Py_None;
  PyObject* description = st_call_own(describe_thread_hook, &known, 1);
  bool ok =
      description && description != Py_None && use_description(t, description);
  Py_XDECREF(description);
  st_drop_own_error(); /* a thread without a name is still traced */
  return ok;
}

static struct thread_state* make_thread_state(void) {
  struct thread_state* t = PyMem_RawCalloc(1, sizeof *t);
  if (!t)
    return NULL;
  pthread_mutex_init(&t->lock, NULL);
  if (!describe_by_hook(t) && !describe_plainly(t)) {
    pthread_mutex_destroy(&t->lock);
    PyMem_RawFree(t);
    return NULL;
  }
  t->next = all_threads;
  if (all_threads)
    all_threads->prev = t;
  all_threads = t;
  return t;
}

struct thread_state* thread_state_get(void) {
  if (st_thread || making)
    return st_thread;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  making = true;
  thread_states_reap();
  pthread_once(&exit_key_once, make_exit_key);
  struct thread_state* t = make_thread_state();
  making = false;
  PyErr_Restore(type, value, traceback);
  st_thread = t;
  pthread_setspecific(exit_key, t);
  return t;
}

/* Whether the next event of a slot in mask announces the sequence's state, and
 * nobody has looked yet. */
static bool will_announce(struct thread_state* t, uint32_t mask) {
  bool announces = false;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    struct thread_sequence* s = t->sequences[slot];
    if (!(mask & (1u << slot)))
      continue;
    if (!s || s->generation != st_instances[slot].generation)
      announces = true;
    else if (st_sequence_will_announce(&s->core) &&
             s->described_epoch != s->core.epoch) {
      s->described_epoch = s->core.epoch;
      announces = true;
    }
  }
  return announces;
}

void thread_state_refresh_name(struct thread_state* t, uint32_t mask) {
  static _Thread_local bool refreshing; /* the hook may trace */
  if (refreshing || !will_announce(t, mask))
    return;
  refreshing = true;
  bool changed = describe_by_hook(t);
  refreshing = false;
  for (int slot = 0; changed && slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      st_sequence_clear_state(&t->sequences[slot]->core);
  }
}

/* The writers' chunks are the parent's: nothing may be written to them. */
static void disable_writers(struct thread_state* t) {
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      st_trace_writer_disable_after_fork(&t->sequences[slot]->core.writer);
  }
}

/* Runs in the child at once, also where C code forks and no Python hook does:
 * of all threads only the forking one can go on writing. */
static void on_native_fork(void) {
  if (st_thread)
    disable_writers(st_thread);
}

void thread_states_install_fork_handler(void) {
  static bool installed;
  if (!installed)
    pthread_atfork(NULL, NULL, on_native_fork);
  installed = true;
}

void thread_states_after_fork(void) {
  /* Every other thread's state is a copy without its thread. */
  for (struct thread_state* t = all_threads; t; t = t->next)
    disable_writers(t);
  while (all_threads) {
    struct thread_state* t = all_threads;
    unlink_state(t);
    /* Locked: it was ending just then, and is half destroyed for ever. */
    if (pthread_mutex_trylock(&t->lock) != 0)
      continue;
    pthread_mutex_unlock(&t->lock);
    thread_state_free(t);
  }
  atomic_store(&dead_threads, 0);
  st_thread = NULL;
  pthread_once(&exit_key_once, make_exit_key);
  pthread_setspecific(exit_key, NULL);
}

/* ---- the asyncio task that runs now ---- */

static void set_task_track(struct thread_state* t, PyObject* track) {
  bool is_track = track && Py_TYPE(track) == st_track_type;
  if (is_track) {
    Py_INCREF(track);
    track_resolve((TrackObject*)track);
  }
  TrackObject* old = t->task_track;
  t->task_track = is_track ? (TrackObject*)track : NULL;
  Py_XDECREF(old);
}

/* Asks Python for the track of the task that runs. */
static void ask_for_task_track(struct thread_state* t) {
  PyObject* track = st_call_own(current_track_hook, NULL, 0);
  st_drop_own_error();
  set_task_track(t, track);
  Py_XDECREF(track);
}

static void use_track_of(struct thread_state* t, PyObject* task) {
  struct task_track* known =
      &t->tasks[st_identity_hash(task) & (TASK_TRACKS - 1)];
  PyObject* reference = PyWeakref_NewRef(task, NULL);
  if (reference && known->task == reference) {
    set_task_track(t, (PyObject*)known->track);
    Py_DECREF(reference);
    return;
  }
  PyErr_Clear(); /* it can't be referred to weakly */
  ask_for_task_track(t);
  if (!reference || !t->task_track) {
    Py_XDECREF(reference);
    return;
  }
  Py_XSETREF(known->task, reference);
  Py_INCREF(t->task_track);
  Py_XSETREF(known->track, t->task_track);
}

/* Asks asyncio first; false: it isn't there. */
static bool use_track_of_current_task(struct thread_state* t) {
  if (!current_task)
    return false;
  PyObject* task = st_call_own(current_task, NULL, 0);
  if (!task)
    st_drop_own_error(); /* no loop runs in this thread */
  if (task && task != Py_None)
    use_track_of(t, task);
  else
    set_task_track(t, NULL);
  Py_XDECREF(task);
  return true;
}

void thread_state_refresh_task(struct thread_state* t) {
  PyThreadState* python = PyThreadState_Get();
  t->context = python->context;
  t->context_version = python->context_ver;
  if (!current_track_hook)
    return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!use_track_of_current_task(t))
    ask_for_task_track(t);
  PyErr_Restore(type, value, traceback);
}

/* ---- all threads ---- */

void thread_state_release_discarded(struct thread_state* t) {
  while (t->discarded_count)
    Py_DECREF(t->discarded[--t->discarded_count]);
  free_all(&t->done);
}

typedef struct thread_sequence* (*visitor)(struct thread_state*, int);

/* Calls visit for each sequence of a slot that its owner isn't writing, and
 * afterwards frees what visit returned. */
static void for_each(int slot, visitor visit) {
  struct thread_sequence* done = NULL;
  for (struct thread_state* t = all_threads; t; t = t->next) {
    if (!t->sequences[slot] || t->busy)
      continue;
    pthread_mutex_lock(&t->lock);
    free_later(&done, visit(t, slot));
    pthread_mutex_unlock(&t->lock);
  }
  free_all(&done);
}

static struct thread_sequence* clear_state(struct thread_state* t, int slot) {
  st_sequence_clear_state(&t->sequences[slot]->core);
  return NULL;
}

static struct thread_sequence* flush(struct thread_state* t, int slot) {
  struct st_sequence* s = &t->sequences[slot]->core;
  if (s->writer.arbiter)
    st_trace_writer_flush(&s->writer);
  return NULL;
}

void thread_states_drop_instance(int slot) {
  for_each(slot, sequence_detach);
}
void thread_states_clear_state(int slot) {
  for_each(slot, clear_state);
}
void thread_states_flush(int slot) {
  for_each(slot, flush);
}

void thread_states_count(int slot, uint64_t* written, uint64_t* lost) {
  *written = st_instances[slot].events_written;
  *lost = st_instances[slot].events_lost;
  for (struct thread_state* t = all_threads; t; t = t->next) {
    struct thread_sequence* s = t->sequences[slot];
    if (!s || s->generation != st_instances[slot].generation)
      continue;
    *written += s->core.events_written;
    *lost += s->core.events_lost;
  }
}
