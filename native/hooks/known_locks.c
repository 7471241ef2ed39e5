#include "hooks/known_locks.h"

#include "hooks/lock_users.h"

struct st_known_lock st_known_locks[ST_KNOWN_LOCKS];
uint64_t st_known_locks_used[ST_KNOWN_LOCKS / 64];

enum { PLACES_LOG2 = 8, PLACES = 1 << PLACES_LOG2 };

/* The texts of call sites, direct-mapped.  Condition.wait makes a lock for each
 * wait: always at the same place. */
static struct {
  PyCodeObject* code;
  int instruction;
  PyObject* text;
} places[PLACES];

static void drop(struct st_known_lock* known) {
  PyObject *code = (PyObject*)known->code, *text = known->text;
  *known = (struct st_known_lock){0};
  Py_XDECREF(code);
  Py_XDECREF(text);
}

struct st_known_lock* st_known_lock_slot_in(struct st_known_lock* set,
                                            const PyObject* lock) {
  struct st_known_lock* unused = NULL;
  for (int i = 0; i < ST_KNOWN_LOCKS_PER_SET; i++) {
    if (set[i].lock == lock)
      return &set[i];
    if (!unused && !set[i].lock)
      unused = &set[i];
  }
  return unused ? unused : set;
}

/* Returns the slot for a new lock.  In a full set another lock loses its own: each
 * in turn, as most locks of a full set have ended. */
static struct st_known_lock* slot_for_new(const PyObject* lock) {
  static unsigned turn;
  struct st_known_lock* slot = st_known_lock_slot(lock);
  bool is_full = slot->lock && slot->lock != lock;
  return is_full ? slot + turn++ % ST_KNOWN_LOCKS_PER_SET : slot;
}

void st_known_lock_made(const PyObject* lock, PyThreadState* thread) {
  struct st_lock_user user = st_lock_user(thread);
  struct st_known_lock made = {
      .code = (PyCodeObject*)Py_XNewRef(user.code),
      .instruction = user.instruction,
      .is_for_notification = st_waits_for_notification(thread)};
  struct st_known_lock* known = slot_for_new(lock);
  drop(known);
  *known = made;
  st_known_lock_claim(known, lock);
}

static PyObject* new_text(PyCodeObject* code, int instruction) {
  int line = PyCode_Addr2Line(code, instruction);
  PyObject* text = PyUnicode_FromFormat("%U:%d (%U)", code->co_filename, line,
                                        code->co_qualname);
  if (!text)
    PyErr_Clear();
  return text;
}

/* Returns the text of a call site, as a borrowed reference. */
static PyObject* text_of(PyCodeObject* code, int instruction) {
  uint64_t mixed =
      ((uint64_t)(uintptr_t)code + (uint64_t)instruction) * 0x9E3779B97F4A7C15u;
  size_t slot = mixed >> (64 - PLACES_LOG2);
  if (places[slot].code != code || places[slot].instruction != instruction ||
      !places[slot].text) {
    places[slot].instruction = instruction;
    Py_XSETREF(places[slot].text, new_text(code, instruction));
    Py_XSETREF(places[slot].code, (PyCodeObject*)Py_NewRef(code));
  }
  return places[slot].text;
}

void st_known_lock_make_text(struct st_known_lock* known) {
  known->text = Py_XNewRef(text_of(known->code, known->instruction));
}

void st_known_locks_clear(void) {
  for (int i = 0; i < ST_KNOWN_LOCKS / 64; i++) {
    for (; st_known_locks_used[i];
         st_known_locks_used[i] &= st_known_locks_used[i] - 1)
      drop(&st_known_locks[i * 64 + __builtin_ctzll(st_known_locks_used[i])]);
  }
  for (int i = 0; i < PLACES; i++) {
    Py_CLEAR(places[i].code);
    Py_CLEAR(places[i].text);
  }
}
