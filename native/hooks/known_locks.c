#include "hooks/known_locks.h"

#include <string.h>

struct st_known_lock st_known_locks[ST_KNOWN_LOCKS];

static bool ends_with(PyObject* text, const char* end) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  size_t length = strlen(end);
  if (!utf8)
    PyErr_Clear();
  return utf8 && (size_t)size >= length &&
         !memcmp(utf8 + (size_t)size - length, end, length);
}

static bool is_library(const PyCodeObject* code) {
  return ends_with(code->co_filename, "/threading.py") ||
         ends_with(code->co_filename, "/queue.py");
}

PyFrameObject* st_lock_user(PyCodeObject** code) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  *code = frame ? PyFrame_GetCode(frame) : NULL;
  while (*code && is_library(*code)) {
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    Py_DECREF(*code);
    frame = caller;
    *code = frame ? PyFrame_GetCode(frame) : NULL;
  }
  return frame;
}

/* Returns whether the running code is Condition.wait, which makes a lock for
 * each wait. */
static bool waits_for_notification(void) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  PyCodeObject* code = frame ? PyFrame_GetCode(frame) : NULL;
  bool waits = code && is_library(code) &&
               ends_with(code->co_qualname, "Condition.wait");
  Py_XDECREF(code);
  Py_XDECREF(frame);
  return waits;
}

static void drop(struct st_known_lock* known) {
  PyObject *code = (PyObject*)known->code, *text = known->text;
  PyObject* arguments = known->arguments;
  *known = (struct st_known_lock){0};
  Py_XDECREF(code);
  Py_XDECREF(text);
  Py_XDECREF(arguments);
}

void st_known_lock_made(const PyObject* lock) {
  struct st_known_lock made = {.lock = lock,
                               .is_for_notification = waits_for_notification()};
  PyFrameObject* user = st_lock_user(&made.code);
  made.instruction = user ? PyFrame_GetLasti(user) : 0;
  Py_XDECREF(user);
  struct st_known_lock* known = st_known_lock_slot(lock);
  drop(known);
  *known = made;
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
  for (int i = 0; i < ST_KNOWN_LOCKS; i++)
    drop(&st_known_locks[i]);
}
