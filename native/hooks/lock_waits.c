#include "hooks/lock_waits.h"

#include <stdbool.h>

#include "core/hot.h"
#include "hooks/auto_detail.h"
#include "hooks/hook_thread.h"
#include "hooks/known_locks.h"
#include "hooks/lock_call.h"
#include "hooks/lock_flag.h"
#include "hooks/lock_users.h"
#include "hooks/python_layout.h"
#include "hooks/thread_ids.h"
#include "hooks/tracer.h"

enum { MAX_ENTRIES = 16 };

/* Parts of the functions that run as acquire().  After a wait the processor has
 * little of their code and foretells no branch, so the usual wait takes few lines
 * of code: in each function the form of the call and the kind of the lock are
 * known, and what is unusual is elsewhere. */
#define INLINE inline __attribute__((always_inline))

/* The two types of locks. */
enum kind { LOCK, RLOCK };

/* An entry that has a function of ours. */
struct entry {
  PyMethodDef* method;
  PyCFunction original, ours;
};

/* What the usual wait needs is at the begin, in two lines of the caches. */
static struct {
  /* The templates of the two slices, with the values made_at, held_by_tid and
   * timed_out.  NULL while nothing is recorded. */
  _Alignas(128) PyObject* for_lock;
  PyObject* for_notification;
  PyInterpreterState* interpreter;
  size_t flag; /* Of a LOCK, as st_lock_flag_find() returns it. */
  /* The original functions stay after the end: calls may be inside of ours. */
  PyCFunction with_keywords[2];
  /* Copies of addresses that are in tables elsewhere. */
  PyThreadState* (*thread)(void);
  PyObject *none, *true_, *false_;
  void (*write)(PyObject* template, PyObject* track,
                const struct st_past_slice* slice);

  PyCFunction fast[2], without[2], make[3], restore;
  newfunc create[2];
  struct entry entries[MAX_ENTRIES];
  int entry_count;
  PyTypeObject* types[2];
  PyObject* dont_block; /* The arguments (False,). */
  uint64_t short_waits, short_ns;
} waits;

/* Writing a slice may take locks, too. */
static INLINE bool is_recording(void) {
  return waits.for_lock && !st_hook_thread.writes_wait;
}

/* Returns the calling thread's state if its waits are recorded now, else
 * NULL. */
static INLINE PyThreadState* recorded_thread(void) {
  PyThreadState* thread = is_recording() ? waits.thread() : NULL;
  return thread && thread->interp == waits.interpreter ? thread : NULL;
}

/* --- Slices -------------------------------------------------------------- */

/* A wait that has ended; `known` is the slot of its lock. */
struct wait {
  PyThreadState* thread;
  struct st_known_lock* known;
  const PyObject *lock, *result; /* Without a result there is an exception. */
  uint64_t holder; /* The thread that had taken the lock last; 0 if unknown. */
  uint64_t begin, end;
};

/* Returns the id of the thread for which this one has waited, as a borrowed
 * reference; None if it is unknown.  A lock that was this thread's may have been
 * handed over to one that has told so meanwhile; else the thread has waited for
 * itself. */
static INLINE PyObject* holder_of(const struct wait* w) {
  uint64_t holder = w->holder;
  bool may_have_changed = !holder || holder == w->thread->native_thread_id;
  if (ST_LIKELY(may_have_changed && w->known->lock == w->lock))
    holder = w->known->holder;
  return holder ? st_thread_id_object(holder) : waits.none;
}

static INLINE void write_wait(const struct wait* w) {
  PyObject* template = waits.for_lock, *place = NULL;
  if (ST_LIKELY(w->known->lock == w->lock)) {
    place = st_known_lock_place(w->known);
    if (w->known->is_for_notification)
      template = waits.for_notification;
  }
  bool has_timed_out = w->result == waits.false_;
  const struct st_past_slice slice = {
      w->begin,
      w->end,
      {place ? place : waits.none, holder_of(w),
       has_timed_out ? waits.true_ : waits.none},
      .count = 3,
      .repeated = true};
  waits.write(template, NULL, &slice);
}

/* Writes a long wait.  Waits of our own code are left out. */
ST_HOT_IN_ORDER(2)
__attribute__((noinline)) static void note_long(const struct wait* w) {
  if (ST_UNLIKELY(st_hidden_uses_lock(w->thread)))
    return;
  st_hook_thread.writes_wait = true;
  st_auto_wait_ends(w->begin, w->end);
  write_wait(w);
  st_hook_thread.writes_wait = false;
}

/* Writes a wait that has raised an exception, which stays pending. */
ST_RARE static void note_failed(const struct wait* w) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  note_long(w);
  PyErr_Restore(type, value, traceback);
}

/* Counts a short wait, which has ended with the lock. */
__attribute__((noinline)) static void count_short(PyThreadState* thread,
                                                  uint64_t ns) {
  if (st_hidden_uses_lock(thread))
    return;
  waits.short_waits++;
  waits.short_ns += ns;
}

/* --- Acquiring ----------------------------------------------------------- */

ST_RARE static enum st_lock_wish wish_of(struct st_lock_call c) {
  return st_lock_call_wish(&c);
}

/* Whether a call for a taken lock has waited: without the lock it returns only
 * after a timeout.  `was_read`: whether its arguments say that it may wait.  Wrong
 * arguments raise an exception at once. */
static INLINE bool has_waited(const struct st_lock_call* c,
                              const PyObject* result, bool was_read) {
  if (ST_UNLIKELY(!result))
    return c->flags != METH_O && wish_of(*c) == ST_WAITS_IF_TAKEN;
  return was_read || result != waits.false_ ||
         ST_LIKELY(st_lock_call_has_timeout(c)) ||
         wish_of(*c) != ST_NEVER_WAITS;
}

static INLINE PyObject* run_as_waiting(const struct st_lock_call* c,
                                       struct st_known_lock* known) {
  if (ST_LIKELY(st_known_lock_claims(known, c->lock)))
    known->waiting++;
  PyObject* result = st_lock_call_run(c);
  if (ST_LIKELY(known->lock == c->lock && known->waiting))
    known->waiting--;
  return result;
}

static INLINE void note(const struct wait* w, const struct st_lock_call* c,
                        bool was_read) {
  if (ST_UNLIKELY(!is_recording()))
    return;
  if (ST_UNLIKELY(w->end - w->begin < ST_MIN_LOCK_WAIT_NS)) {
    if (w->result == waits.true_)
      count_short(w->thread, w->end - w->begin);
  } else if (ST_LIKELY(has_waited(c, w->result, was_read))) {
    if (ST_LIKELY(w->result != NULL))
      note_long(w);
    else
      note_failed(w);
  }
}

static INLINE PyObject* acquire_and_measure(const struct st_lock_call* c,
                                            struct st_known_lock* known,
                                            PyThreadState* thread,
                                            bool was_read) {
  uint64_t holder = known->lock == c->lock ? known->holder : 0;
  uint64_t begin = st_thread_now(&st_hook_thread);
  st_auto_wait_begins(thread, begin);
  PyObject* result = run_as_waiting(c, known);
  uint64_t end = st_thread_now(&st_hook_thread);
  const struct wait w = {thread, known, c->lock, result, holder, begin, end};
  note(&w, c, was_read);
  st_auto_wait_is_over(begin);
  return result;
}

/* Takes the lock if it is free.  Returns Py_True if that has succeeded. */
__attribute__((noinline)) static PyObject* try_to_acquire(enum kind kind,
                                                          PyObject* lock) {
  struct st_lock_call c = {.lock = lock,
                           .tuple = waits.dont_block,
                           .array = (PyObject* const[]){Py_False},
                           .count = 1};
  c.flags = waits.with_keywords[kind] ? ST_WITH_KEYWORDS : METH_FASTCALL;
  c.function =
      waits.with_keywords[kind] ? waits.with_keywords[kind] : waits.fast[kind];
  return st_lock_call_run(&c);
}

/* Reads the arguments first.  A lock that may be free is tried: the time in which
 * a thread takes a free one is no wait, however long others have the CPU
 * meanwhile. */
__attribute__((noinline)) static PyObject* acquire_as_asked(
    enum kind kind, struct st_lock_call c, struct st_known_lock* known,
    PyThreadState* thread, bool may_be_free) {
  enum st_lock_wish wish = st_lock_call_wish(&c);
  if (wish == ST_NEVER_WAITS)
    return st_lock_call_run(&c);
  if (may_be_free && wish == ST_WAITS_IF_TAKEN) {
    PyObject* result = try_to_acquire(kind, c.lock);
    if (result != Py_False)
      return result;
    Py_DECREF(result);
  }
  return acquire_and_measure(&c, known, thread, true);
}

/* Whether a thread may own the lock although the lock says that it is free: a
 * thread that has waited owns it before it has the GIL, and only with the GIL
 * it tells the lock. */
static bool may_be_handed_over(const struct st_known_lock* known,
                               const PyObject* lock) {
  return known->lock && (known->lock != lock || known->waiting);
}

/* Only a LOCK can be asked: an RLock may be held by its own thread.  Arguments
 * without names are read first, as most of these calls never wait. */
static INLINE PyObject* acquire_recorded(enum kind kind,
                                         const struct st_lock_call* c,
                                         struct st_known_lock* known,
                                         PyThreadState* thread) {
  bool can_ask = kind == LOCK && ST_LIKELY(waits.flag);
  bool is_taken = can_ask && ST_LIKELY(st_lock_flag(c->lock, waits.flag));
  if (can_ask && ST_UNLIKELY(!is_taken) && !may_be_handed_over(known, c->lock))
    return st_lock_call_run(c);
  if (ST_LIKELY(is_taken && !st_lock_call_has_unnamed(c)))
    return acquire_and_measure(c, known, thread, false);
  return acquire_as_asked(kind, *c, known, thread, !is_taken);
}

static INLINE void note_holder(struct st_known_lock* known,
                               const PyObject* lock,
                               const PyThreadState* thread) {
  if (st_known_lock_claims(known, lock))
    known->holder = thread->native_thread_id;
}

static INLINE PyObject* acquire(enum kind kind, const struct st_lock_call* c) {
  PyThreadState* thread = recorded_thread();
  if (ST_UNLIKELY(!thread))
    return st_lock_call_run(c);
  struct st_known_lock* known = st_known_lock_slot(c->lock);
  PyObject* result = acquire_recorded(kind, c, known, thread);
  if (result == waits.true_)
    note_holder(known, c->lock, thread);
  return result;
}

#define ST_ACQUIRE(name, kind, with_keywords_in)                              \
  with_keywords_in static PyObject* name##_with_keywords(                     \
      PyObject* self, PyObject* args, PyObject* kwargs) {                     \
    const struct st_lock_call c = {.lock = self,                              \
                                   .flags = ST_WITH_KEYWORDS,                 \
                                   .function = waits.with_keywords[kind],     \
                                   .tuple = args,                             \
                                   .names = kwargs};                          \
    return acquire(kind, &c);                                                 \
  }                                                                           \
  ST_HOT static PyObject* name##_fast(PyObject* self, PyObject* const* args,  \
                                      Py_ssize_t count, PyObject* names) {    \
    const struct st_lock_call c = {.lock = self,                              \
                                   .flags = METH_FASTCALL,                    \
                                   .function = waits.fast[kind],              \
                                   .array = args,                             \
                                   .count = count,                            \
                                   .names = names};                           \
    return acquire(kind, &c);                                                 \
  }                                                                           \
  ST_HOT static PyObject* name##_without(PyObject* self, PyObject* unused) {  \
    (void)unused;                                                             \
    const struct st_lock_call c = {                                           \
        .lock = self, .flags = METH_NOARGS, .function = waits.without[kind]}; \
    return acquire(kind, &c);                                                 \
  }

ST_ACQUIRE(lock, LOCK, ST_HOT_IN_ORDER(1) ST_BEGINS_PAGE)
ST_ACQUIRE(rlock, RLOCK, ST_HOT)

/* Condition.wait takes its RLock again: the whole lock, as often as it was taken.
 * That always waits if another thread has it. */
static PyObject* rlock_restore(PyObject* self, PyObject* state) {
  const struct st_lock_call c = {
      .lock = self, .flags = METH_O, .function = waits.restore, .tuple = state};
  PyThreadState* thread = recorded_thread();
  if (!thread)
    return st_lock_call_run(&c);
  struct st_known_lock* known = st_known_lock_slot(self);
  PyObject* result = acquire_and_measure(&c, known, thread, true);
  if (result)
    note_holder(known, self, thread);
  return result;
}

/* --- Making -------------------------------------------------------------- */

static PyObject* made(PyObject* lock) {
  PyThreadState* thread = lock ? recorded_thread() : NULL;
  if (thread)
    st_known_lock_made(lock, thread);
  return lock;
}

#define ST_MAKE(number)                                              \
  static PyObject* make_##number(PyObject* module, PyObject* args) { \
    return made(waits.make[number](module, args));                   \
  }

ST_MAKE(0)
ST_MAKE(1)
ST_MAKE(2)

static PyObject* create_lock(PyTypeObject* t, PyObject* args, PyObject* kw) {
  return made(waits.create[LOCK](t, args, kw));
}

static PyObject* create_rlock(PyTypeObject* t, PyObject* args, PyObject* kw) {
  return made(waits.create[RLOCK](t, args, kw));
}

/* --- Start and stop ------------------------------------------------------ */

static void replace(PyMethodDef* method, PyCFunction ours) {
  if (waits.entry_count == MAX_ENTRIES)
    return;
  waits.entries[waits.entry_count++] =
      (struct entry){method, method->ml_meth, ours};
  method->ml_meth = ours;
}

/* Returns the entry of a method of a type; NULL if it is missing. */
static PyMethodDef* method_of(PyTypeObject* type, const char* name) {
  PyObject* method = PyObject_GetAttrString((PyObject*)type, name);
  PyMethodDef* entry = method && Py_IS_TYPE(method, &PyMethodDescr_Type)
                           ? ((PyMethodDescrObject*)method)->d_method
                           : NULL;
  Py_XDECREF(method);
  PyErr_Clear();
  return entry;
}

static void hook_acquire(enum kind kind, const char* name) {
  static PyCFunction const kOurs[2][3] = {
      {(PyCFunction)(void (*)(void))lock_with_keywords,
       (PyCFunction)(void (*)(void))lock_fast, lock_without},
      {(PyCFunction)(void (*)(void))rlock_with_keywords,
       (PyCFunction)(void (*)(void))rlock_fast, rlock_without}};
  PyMethodDef* method = method_of(waits.types[kind], name);
  if (!method)
    return;
  PyCFunction* originals[] = {&waits.with_keywords[kind], &waits.fast[kind],
                              &waits.without[kind]};
  int form = method->ml_flags == ST_WITH_KEYWORDS                  ? 0
             : method->ml_flags == (METH_FASTCALL | METH_KEYWORDS) ? 1
             : method->ml_flags == METH_NOARGS                     ? 2
                                                                   : -1;
  if (form < 0 || method->ml_meth == kOurs[kind][form])
    return;
  *originals[form] = method->ml_meth;
  replace(method, kOurs[kind][form]);
}

static void hook_restore(void) {
  PyMethodDef* method = method_of(waits.types[RLOCK], "_acquire_restore");
  bool has_one = method && (method->ml_flags == METH_VARARGS ||
                            method->ml_flags == METH_O);
  if (!has_one || method->ml_meth == rlock_restore)
    return;
  waits.restore = method->ml_meth;
  replace(method, rlock_restore);
}

static void hook_type(enum kind kind, PyObject* type, newfunc create) {
  if (!type || !PyType_Check(type))
    return;
  waits.types[kind] = (PyTypeObject*)type;
  hook_acquire(kind, "acquire");
  hook_acquire(kind, "__enter__");
  hook_acquire(kind, "acquire_lock");
  waits.create[kind] = waits.types[kind]->tp_new;
  if (waits.create[kind])
    waits.types[kind]->tp_new = create;
}

static void hook_makers(PyObject* module) {
  static const char* const kNames[] = {"allocate_lock", "allocate",
                                       "_set_sentinel"};
  static PyCFunction const kOurs[] = {make_0, make_1, make_2};
  for (int i = 0; i < 3; i++) {
    PyObject* function = PyObject_GetAttrString(module, kNames[i]);
    PyErr_Clear();
    if (function && PyCFunction_CheckExact(function) &&
        PyCFunction_GET_FLAGS(function) == METH_NOARGS) {
      PyMethodDef* method = ((PyCFunctionObject*)function)->m_ml;
      waits.make[i] = method->ml_meth;
      replace(method, kOurs[i]);
    }
    Py_XDECREF(function);
  }
}

static PyObject* start(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *for_lock, *for_notification, *hidden;
  if (!PyArg_ParseTuple(args, "OOU", &for_lock, &for_notification, &hidden))
    return NULL;
#ifdef Py_GIL_DISABLED
  Py_RETURN_FALSE;
#endif
  if (waits.for_lock || PyInterpreterState_Get() != PyInterpreterState_Main())
    Py_RETURN_FALSE;
  PyObject* module = PyImport_ImportModule("_thread");
  if (!waits.dont_block)
    waits.dont_block = PyTuple_Pack(1, Py_False);
  if (!module || !waits.dont_block) {
    Py_XDECREF(module);
    return NULL;
  }
  waits.interpreter = PyInterpreterState_Get();
  waits.thread = PyThreadState_Get;
  waits.none = Py_None;
  waits.true_ = Py_True;
  waits.false_ = Py_False;
  waits.write = st_hooks.api->past_slice;
  waits.short_waits = waits.short_ns = 0;
  PyObject* lock = PyObject_GetAttrString(module, "LockType");
  PyObject* rlock = PyObject_GetAttrString(module, "RLock");
  PyErr_Clear();
  waits.flag = st_lock_flag_find(module);
  hook_type(LOCK, lock, create_lock);
  hook_type(RLOCK, rlock, create_rlock);
  if (waits.types[RLOCK])
    hook_restore();
  hook_makers(module);
  st_lock_users_start(hidden);
  waits.for_notification = Py_NewRef(for_notification);
  waits.for_lock = Py_NewRef(for_lock);
  Py_XDECREF(lock);
  Py_XDECREF(rlock);
  Py_DECREF(module);
  Py_RETURN_TRUE;
}

static PyObject* stop(PyObject* Py_UNUSED(module),
                      PyObject* Py_UNUSED(unused)) {
  static newfunc const kCreate[] = {create_lock, create_rlock};
  if (!waits.for_lock)
    Py_RETURN_NONE;
  for (int i = 0; i < waits.entry_count; i++)
    if (waits.entries[i].method->ml_meth == waits.entries[i].ours)
      waits.entries[i].method->ml_meth = waits.entries[i].original;
  waits.entry_count = 0;
  for (int kind = LOCK; kind <= RLOCK; kind++)
    if (waits.types[kind] && waits.types[kind]->tp_new == kCreate[kind])
      waits.types[kind]->tp_new = waits.create[kind];
  Py_CLEAR(waits.for_lock);
  Py_CLEAR(waits.for_notification);
  st_known_locks_clear();
  st_thread_ids_clear();
  st_lock_users_clear();
  Py_RETURN_NONE;
}

static PyObject* take_short(PyObject* Py_UNUSED(module),
                            PyObject* Py_UNUSED(unused)) {
  uint64_t count = waits.short_waits, ns = waits.short_ns;
  waits.short_waits = waits.short_ns = 0;
  return Py_BuildValue("(KK)", (unsigned long long)count,
                       (unsigned long long)ns);
}

static PyMethodDef kFunctions[] = {
    {"start_lock_waits", start, METH_VARARGS,
     "start_lock_waits(for_lock, for_notification, hidden)\n--\n\nRecord waits "
     "for locks as slices of two templates, except those of code in the folder "
     "`hidden`; return whether that is possible."},
    {"stop_lock_waits", stop, METH_NOARGS, "Stop recording waits for locks."},
    {"take_short_lock_waits", take_short, METH_NOARGS,
     "Return how many waits were too short for a slice since the last call, "
     "and their time in ns."},
    {NULL, NULL, 0, NULL}};

int st_add_lock_waits(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
