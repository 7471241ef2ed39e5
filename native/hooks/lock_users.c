#include "hooks/lock_users.h"

#include "core/hot.h"

enum { ROLES_LOG2 = 8, ROLES = 1 << ROLES_LOG2 };

enum role { USER, LIBRARY, HIDDEN };

static struct {
  PyObject* hidden;
  struct {
    PyObject* code;
    enum role role;
  } roles[ROLES];
} users;

static bool ends_with(PyObject* text, const char* end) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  size_t length = strlen(end);
  if (!utf8)
    PyErr_Clear();
  return utf8 && (size_t)size >= length &&
         !memcmp(utf8 + (size_t)size - length, end, length);
}

static enum role find_role(PyCodeObject* code) {
  PyObject* file = code->co_filename;
  if (ends_with(file, "/threading.py") || ends_with(file, "/queue.py"))
    return LIBRARY;
  bool hidden = users.hidden && PyUnicode_Tailmatch(file, users.hidden, 0,
                                                    PY_SSIZE_T_MAX, -1) == 1;
  return hidden ? HIDDEN : USER;
}

__attribute__((noinline)) static void set_role(size_t slot, PyObject* code) {
  users.roles[slot].role = find_role((PyCodeObject*)code);
  Py_XSETREF(users.roles[slot].code, Py_NewRef(code));
}

static enum role role_of(PyObject* code) {
  uint64_t mixed = (uint64_t)(uintptr_t)code * 0x9E3779B97F4A7C15u;
  size_t slot = mixed >> (64 - ROLES_LOG2);
  if (users.roles[slot].code != code)
    set_role(slot, code);
  return users.roles[slot].role;
}

static PyObject* code_of(struct st_stack_frame frame) {
  PyObject* code = (PyObject*)(uintptr_t)frame.code;
  return code && PyCode_Check(code) ? code : NULL;
}

/* Finds the user's frame; without one its address is 0.  Returns its role. */
static inline enum role find_user(PyThreadState* thread,
                                  struct st_stack_frame* frame) {
  enum role role = LIBRARY;
  for (*frame = st_python_frame(thread); frame->address;
       *frame = st_python_caller(*frame)) {
    PyObject* code = code_of(*frame);
    role = code ? role_of(code) : LIBRARY;
    if (role != LIBRARY)
      break;
  }
  return role;
}

ST_HOT bool st_hidden_uses_lock(PyThreadState* thread) {
  struct st_stack_frame frame;
  return find_user(thread, &frame) == HIDDEN;
}

struct st_lock_user st_lock_user(PyThreadState* thread) {
  struct st_stack_frame frame;
  find_user(thread, &frame);
  return frame.address ? (struct st_lock_user){(PyCodeObject*)code_of(frame),
                                               st_python_instruction(frame)}
                       : (struct st_lock_user){0};
}

bool st_waits_for_notification(PyThreadState* thread) {
  PyObject* code = code_of(st_python_frame(thread));
  return code && role_of(code) == LIBRARY &&
         ends_with(((PyCodeObject*)code)->co_qualname, "Condition.wait");
}

void st_lock_users_start(PyObject* hidden) {
  Py_XSETREF(users.hidden, Py_NewRef(hidden));
}

void st_lock_users_clear(void) {
  for (int i = 0; i < ROLES; i++)
    Py_CLEAR(users.roles[i].code);
  Py_CLEAR(users.hidden);
}
