#include "hooks/lock_users.h"

struct st_lock_code st_lock_codes[ST_LOCK_ROLES];

static PyObject* hidden_folder;

static bool ends_with(PyObject* text, const char* end) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  size_t length = strlen(end);
  if (!utf8)
    PyErr_Clear();
  return utf8 && (size_t)size >= length &&
         !memcmp(utf8 + (size_t)size - length, end, length);
}

static enum st_lock_role find_role(PyCodeObject* code) {
  PyObject* file = code->co_filename;
  if (ends_with(file, "/threading.py") || ends_with(file, "/queue.py"))
    return ST_LOCK_LIBRARY;
  bool hidden = hidden_folder && PyUnicode_Tailmatch(file, hidden_folder, 0,
                                                     PY_SSIZE_T_MAX, -1) == 1;
  return hidden ? ST_LOCK_HIDDEN : ST_LOCK_USER;
}

__attribute__((noinline)) static void set_role(struct st_lock_code* slot,
                                               PyObject* code) {
  slot->role = find_role((PyCodeObject*)code);
  Py_XSETREF(slot->code, Py_NewRef(code));
}

static enum st_lock_role role_of(PyObject* code) {
  struct st_lock_code* slot = st_lock_code_slot((uint64_t)(uintptr_t)code);
  if (slot->code != code)
    set_role(slot, code);
  return slot->role;
}

static PyObject* code_of(struct st_stack_frame frame) {
  PyObject* code = (PyObject*)(uintptr_t)frame.code;
  return code && PyCode_Check(code) ? code : NULL;
}

/* Finds the user's frame; without one its address is 0.  Returns its role. */
static inline enum st_lock_role find_user(PyThreadState* thread,
                                          struct st_stack_frame* frame) {
  enum st_lock_role role = ST_LOCK_LIBRARY;
  for (*frame = st_python_frame(thread); frame->address;
       *frame = st_python_caller(*frame)) {
    PyObject* code = code_of(*frame);
    role = code ? role_of(code) : ST_LOCK_LIBRARY;
    if (role != ST_LOCK_LIBRARY)
      break;
  }
  return role;
}

bool st_hidden_folder_uses_lock(PyThreadState* thread) {
  struct st_stack_frame frame;
  return find_user(thread, &frame) == ST_LOCK_HIDDEN;
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
  return code && role_of(code) == ST_LOCK_LIBRARY &&
         ends_with(((PyCodeObject*)code)->co_qualname, "Condition.wait");
}

void st_lock_users_start(PyObject* hidden) {
  Py_XSETREF(hidden_folder, Py_NewRef(hidden));
}

void st_lock_users_clear(void) {
  for (int i = 0; i < ST_LOCK_ROLES; i++)
    Py_CLEAR(st_lock_codes[i].code);
  Py_CLEAR(hidden_folder);
}
