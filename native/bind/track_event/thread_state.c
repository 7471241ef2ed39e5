#include "bind/track_event/thread_state.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bind/common/handler_errors.h"
#include "bind/common/untraced_calls.h"
#include "bind/track_event/process_track.h"
#include "core/session_slots.h"

_Thread_local struct st_own st_own;

/* The Python hook that describes a thread: (last name) -> (uuid, descriptor,
 * name), or None if the name is unchanged. */
static PyObject* describe_thread_hook;
/* A list: while it has entries, the hook is called. */
static PyObject* called_soon;

/* Called with each new state, on its thread; NULL before it is set. */
static void (*watch)(struct thread_state* t);

void thread_states_set_watch(void (*function)(struct thread_state* t)) {
  watch = function;
}

void thread_state_set_hook(PyObject* describe_thread, PyObject* soon) {
  Py_XSETREF(describe_thread_hook, Py_XNewRef(describe_thread));
  Py_XSETREF(called_soon, Py_XNewRef(soon));
}

/* Removes a sequence from the state of its thread, and closes the sequence.
 * The caller has to free it, which may run Python code. */
static struct thread_sequence* sequence_detach(struct thread_state* t,
                                               int slot) {
  struct thread_sequence* s = t->sequences[slot];
  t->sequences[slot] = NULL;
  if (s)
    thread_sequence_close(s);
  return s;
}

struct thread_sequence* thread_state_sequence(struct thread_state* t,
                                              int slot) {
  struct thread_sequence* s = t->sequences[slot];
  if (s && s->generation == st_slot_running(slot))
    return s;
  thread_sequence_free_later(&t->done, sequence_detach(t, slot));
  return t->sequences[slot] = thread_sequence_new(slot, &t->track);
}

/* Closes the sequences of the ending thread.  Runs on that thread, perhaps
 * without the GIL. */
static void on_thread_exit(void) {
  struct thread_state* t = st_own.state;
  st_own.state = NULL;
  pthread_mutex_lock(&t->lock);
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      thread_sequence_close(t->sequences[slot]);
  }
  pthread_mutex_unlock(&t->lock);
}

/* Disables the writers of a thread in the child of a fork: their chunks belong
 * to the parent. */
static void disable_writers(struct thread_state* t) {
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      st_trace_writer_disable_after_fork(&t->sequences[slot]->core.writer);
  }
}

/* Frees the state of a thread that has ended, or that exists only in the parent
 * process.  May run Python code. */
static void free_state(struct st_thread_record* record, bool ended) {
  struct thread_state* t = (struct thread_state*)record;
  if (!ended) {
    disable_writers(t);
    /* If this mutex is locked, the thread was ending during the fork.  Its
     * state is half destroyed, so the memory is leaked. */
    if (pthread_mutex_trylock(&t->lock) != 0)
      return;
    pthread_mutex_unlock(&t->lock);
  }
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    thread_sequence_free_later(&t->done, sequence_detach(t, slot));
  thread_state_release_discarded(t);
  for (int i = 0; i < TASK_TRACKS; i++) {
    Py_XDECREF(t->tasks[i].task);
    Py_XDECREF(t->tasks[i].track);
  }
  Py_XDECREF(t->task_track);
  Py_XDECREF(t->name);
  Py_XDECREF(t->thread);
  PyMem_RawFree(t->descriptor);
  PyMem_RawFree(t->scratch.data);
  PyMem_RawFree(t->interned.data);
  pthread_mutex_destroy(&t->lock);
  PyMem_RawFree(t);
}

static struct st_thread_list states = {.on_exit = on_thread_exit,
                                       .free_record = free_state};

void thread_states_reap(void) {
  st_thread_list_reap(&states);
}

/* Stores the thread description that the Python hook has returned.  Returns
 * false with an exception set on failure. */
static bool use_description(struct thread_state* t, PyObject* description) {
  PyObject *bytes, *name, *thread;
  unsigned long long uuid;
  if (!PyArg_ParseTuple(description, "KSUO", &uuid, &bytes, &name, &thread))
    return false;
  size_t size = (size_t)PyBytes_Size(bytes);
  uint8_t* copy = PyMem_RawMalloc(size + 1);
  if (!copy)
    return false;
  memcpy(copy, PyBytes_AsString(bytes), size);
  PyMem_RawFree(t->descriptor);
  t->descriptor = copy;
  t->track = (struct st_track){uuid, copy, size, &st_process_track};
  discard_later(t, t->name);
  t->name = Py_NewRef(name);
  discard_later(t, t->thread);
  t->thread = Py_NewRef(thread);
  prctl(PR_GET_NAME, t->kernel_name);
  return true;
}

/* Describes the thread without the Python hook: by the kernel's ids, without a
 * name. */
static bool describe_plainly(struct thread_state* t) {
  t->descriptor = PyMem_RawMalloc(ST_THREAD_DESCRIPTOR);
  if (!t->descriptor)
    return false;
  t->track = (struct st_track){.descriptor = t->descriptor,
                               .parent = &st_process_track};
  t->track.descriptor_size = describe_thread((uint64_t)syscall(SYS_gettid),
                                             t->descriptor, &t->track.uuid);
  prctl(PR_GET_NAME, t->kernel_name);
  return true;
}

/* Calls the Python hook to describe the thread.  Returns false if the hook
 * failed or the thread's name is unchanged. */
static bool describe_by_hook(struct thread_state* t) {
  if (!describe_thread_hook)
    return false;
  PyObject* known = t->name ? t->name : Py_None;
  PyObject* description = st_call_untraced(describe_thread_hook, &known, 1);
  bool ok =
      description && description != Py_None && use_description(t, description);
  Py_XDECREF(description);
  /* If the hook fails, only the thread's name is missing. */
  st_drop_own_error();
  return ok;
}

static void forget_python_state(PyObject* Py_UNUSED(capsule)) {
  if (st_own.state)
    st_own.state->python = NULL;
}

/* Keeps the PyThreadState of the calling thread.  An exception that is set stays
 * set. */
static void keep_python_state(struct thread_state* t) {
  PyObject *error, *error_value, *traceback;
  PyErr_Fetch(&error, &error_value, &traceback);
  PyObject* dict = PyThreadState_GetDict();
  PyObject* end = dict ? PyCapsule_New(t, NULL, forget_python_state) : NULL;
  /* The capsule of an earlier state of this thread is dropped here. */
  if (end && PyDict_SetItemString(dict, "stretto", end) == 0)
    t->python = PyThreadState_Get();
  Py_XDECREF(end);
  PyErr_Clear();
  PyErr_Restore(error, error_value, traceback);
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
  st_thread_list_add(&states, &t->record, 0);
  st_thread_list_claim(&t->record);
  keep_python_state(t);
  if (watch)
    watch(t);
  return t;
}

struct thread_state* thread_state_get(void) {
  if (st_own.state || st_own.is_making_state)
    return st_own.state;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  st_own.is_making_state = true;
  thread_states_reap();
  struct thread_state* t = make_thread_state();
  st_own.is_making_state = false;
  PyErr_Restore(type, value, traceback);
  return st_own.state = t;
}

/* Returns whether the hook would find the thread's name unchanged.  Runs no
 * Python code, and so takes a tenth of the hook's time. */
static bool has_known_name(const struct thread_state* t) {
  static PyObject* attribute;
  PyObject* thread;
  if (!t->thread || !PyWeakref_Check(t->thread) ||
      PyList_GET_SIZE(called_soon) || PyWeakref_GetRef(t->thread, &thread) <= 0)
    return false;
  if (!attribute)
    attribute = PyUnicode_InternFromString("_name");
  PyObject* name =
      attribute ? PyObject_GenericGetAttr(thread, attribute) : NULL;
  if (!name)
    PyErr_Clear();
  Py_DECREF(thread);
  Py_XDECREF(name);
  return name && name == t->name;
}

/* Returns whether the thread's name has to be checked now.  That is so if the
 * next event describes the thread in a slot of `mask`, and the name was not
 * checked for this description before. */
static bool will_announce(struct thread_state* t, uint32_t mask) {
  bool announces = false;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    struct thread_sequence* s = t->sequences[slot];
    if (!(mask & (1u << slot)))
      continue;
    if (!s || s->generation != st_slot_running(slot))
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
  /* Whether the Python hook is running on this thread.  The hook may record
   * events. */
  static _Thread_local bool refreshing;
  if (refreshing || !will_announce(t, mask) || has_known_name(t))
    return;
  refreshing = true;
  bool changed = describe_by_hook(t);
  refreshing = false;
  for (int slot = 0; changed && slot < MAX_INSTANCES; slot++) {
    if (t->sequences[slot])
      st_sequence_clear_state(&t->sequences[slot]->core);
  }
}

/* Runs in the child of each fork, even if C code forks without Python's hooks.
 * In the child only the forking thread exists, so only its writers could still
 * write. */
static void on_native_fork(void) {
  if (st_own.state)
    disable_writers(st_own.state);
}

void thread_states_install_fork_handler(void) {
  static bool installed;
  if (!installed)
    pthread_atfork(NULL, NULL, on_native_fork);
  installed = true;
  st_thread_list_init(&states);
}

void thread_states_after_fork(void) {
  /* The calling thread gets a new state, too.  The old states are freed when
   * the next state is made.  To free them here would copy pages, even in a
   * child that records nothing. */
  if (st_own.state)
    st_own.state->record.lost = true;
  pthread_setspecific(states.key, NULL);
  st_own.state = NULL;
}

void thread_state_release_discarded(struct thread_state* t) {
  while (t->discarded_count)
    Py_DECREF(t->discarded[--t->discarded_count]);
  thread_sequences_free(&t->done);
}

typedef struct thread_sequence* (*visitor)(struct thread_state*, int);

struct visit {
  int slot;
  visitor visitor;
  struct thread_sequence* done;
};

static void visit_state(struct st_thread_record* record, void* context) {
  struct thread_state* t = (struct thread_state*)record;
  struct visit* v = context;
  if (!t->sequences[v->slot] || t->busy)
    return;
  pthread_mutex_lock(&t->lock);
  thread_sequence_free_later(&v->done, v->visitor(t, v->slot));
  pthread_mutex_unlock(&t->lock);
}

/* Calls `visitor` for each sequence of a slot, except sequences that their
 * owner thread is writing.  `visitor` returns a sequence that has to be freed,
 * or NULL. */
static void for_each(int slot, visitor visitor) {
  struct visit v = {slot, visitor, NULL};
  st_thread_list_visit(&states, visit_state, &v);
  thread_sequences_free(&v.done);
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

static struct thread_sequence* give_back(struct thread_state* t, int slot) {
  struct st_trace_writer* w = &t->sequences[slot]->core.writer;
  if (w->chunk.size)
    st_trace_writer_give_back(w);
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
void thread_states_give_back(int slot) {
  for_each(slot, give_back);
}

void thread_states_visit(void (*visit)(struct thread_state* t, void* context),
                         void* context) {
  for (struct st_thread_record* r = states.first; r; r = r->next) {
    if (!r->ended && !r->lost)
      visit((struct thread_state*)r, context);
  }
}

void thread_states_count(int slot, uint64_t* written, uint64_t* lost) {
  uint32_t generation = st_slot_counts(slot, written, lost);
  for (struct st_thread_record* r = states.first; r; r = r->next) {
    struct thread_sequence* s = ((struct thread_state*)r)->sequences[slot];
    if (!s || s->generation != generation)
      continue;
    *written += s->core.events_written;
    *lost += s->core.events_lost;
  }
}
