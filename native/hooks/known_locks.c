#include "hooks/known_locks.h"

#include "hooks/lock_users.h"

struct st_known_lock st_known_locks[ST_KNOWN_LOCKS];
uint64_t st_known_locks_used[ST_KNOWN_LOCKS / 64];

static void drop(struct st_known_lock* known) {
  PyObject *code = (PyObject*)known->code, *text = known->text;
  *known = (struct st_known_lock){0};
  Py_XDECREF(code);
  Py_XDECREF(text);
}

void st_known_lock_made(const PyObject* lock, PyThreadState* thread) {
  struct st_lock_user user = st_lock_user(thread);
  struct st_known_lock made = {
      .code = (PyCodeObject*)Py_XNewRef(user.code),
      .instruction = user.instruction,
      .is_for_notification = st_waits_for_notification(thread)};
  struct st_known_lock* known = st_known_lock_slot(lock);
  drop(known);
  *known = made;
  st_known_lock_claim(known, lock);
}

PyObject* st_known_lock_place(struct st_known_lock* known) {
  if (!known->text && known->code) {
    int line = PyCode_Addr2Line(known->code, known->instruction);
    known->text = PyUnicode_FromFormat("%U:%d (%U)", known->code->co_filename,
                                       line, known->code->co_qualname);
    if (!known->text)
      PyErr_Clear();
  }
  return known->text;
}

void st_known_locks_clear(void) {
  for (int i = 0; i < ST_KNOWN_LOCKS / 64; i++) {
    for (; st_known_locks_used[i];
         st_known_locks_used[i] &= st_known_locks_used[i] - 1)
      drop(&st_known_locks[i * 64 + __builtin_ctzll(st_known_locks_used[i])]);
  }
}
