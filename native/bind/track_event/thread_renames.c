#include "bind/track_event/thread_renames.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bind/common/arguments.h"
#include "bind/track_event/process_track.h"
#include "bind/track_event/thread_state.h"
#include "core/setters.h"

enum { MAX_KEPT = 4096, THREAD_NAME_FIELD = 5 };

/* A thread that has ended, and the sessions that its name is for. */
struct kept {
  PyObject* descriptor;
  uint32_t slots;
};
static struct kept kept[MAX_KEPT];
static int kept_count;

static uint64_t id_of(const struct thread_state* t) {
  return t->track.uuid ^ st_process_track.uuid;
}

/* --- Names --------------------------------------------------------------- */

/* Returns a new reference to the name that the thread has in Python; NULL if it
 * has none.  Runs no Python code. */
static PyObject* python_name(PyObject* thread) {
  static PyObject* attribute;
  if (!attribute)
    attribute = PyUnicode_InternFromString("_name");
  PyObject* name =
      attribute && thread ? PyObject_GenericGetAttr(thread, attribute) : NULL;
  if (!name)
    PyErr_Clear();
  if (!name || PyUnicode_CheckExact(name))
    return name;
  Py_DECREF(name);
  return NULL;
}

static bool read_kernel_name(uint64_t native_id, char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%llu/comm",
           (unsigned long long)native_id);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? -1 : read(file, name, ST_KERNEL_NAME - 1);
  if (file >= 0)
    close(file);
  if (size <= 0)
    return false;
  name[size - (name[size - 1] == '\n')] = 0;
  return true;
}

/* Returns whether the text begins with the kernel's name. */
static bool begins_with(PyObject* text, const char* name) {
  Py_ssize_t size;
  const char* bytes = text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
  if (!bytes)
    PyErr_Clear();
  return bytes && strncmp(bytes, name, strlen(name)) == 0;
}

/* Returns the thread's name in the kernel as a new reference; NULL if the
 * program has not chosen it. */
static PyObject* kernel_name(const struct thread_state* t, PyObject* known) {
  char name[ST_KERNEL_NAME];
  uint64_t native_id = id_of(t);
  if (native_id == (uint64_t)getpid() || !read_kernel_name(native_id, name) ||
      !*name || strcmp(name, t->kernel_name) == 0 || begins_with(known, name))
    return NULL;
  return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

/* Returns the name that the thread got after it was described, as a new
 * reference; NULL if there is none. */
static PyObject* new_name(const struct thread_state* t, PyObject* thread) {
  PyObject* name = python_name(thread);
  if (name && (!t->name || PyUnicode_Compare(name, t->name) != 0))
    return name;
  PyObject* other = kernel_name(t, name ? name : t->name);
  Py_XDECREF(name);
  return other;
}

/* --- Descriptors --------------------------------------------------------- */

static PyObject* descriptor_of(const struct thread_state* t, PyObject* name) {
  PyObject* text = PyUnicode_AsEncodedString(name, "utf-8", "replace");
  size_t size = text ? (size_t)PyBytes_GET_SIZE(text) : 0;
  uint8_t* data = text ? PyMem_RawMalloc(2 * (size + 64)) : NULL;
  PyObject* made = NULL;
  if (data) {
    uint8_t *thread = data + size + 64, *e = thread, *p = data;
    e = st_thread_descriptor_put_pid(e, getpid());
    e = st_thread_descriptor_put_tid(e, (int64_t)id_of(t));
    e = st_put_bytes_field(e, THREAD_NAME_FIELD, PyBytes_AS_STRING(text), size);
    p = st_track_descriptor_put_uuid(p, t->track.uuid);
    p = st_track_descriptor_put_parent_uuid(p, st_process_track.uuid);
    p = st_track_descriptor_put_thread(p, thread, (size_t)(e - thread));
    made = PyBytes_FromStringAndSize((const char*)data, p - data);
  }
  PyMem_RawFree(data);
  Py_XDECREF(text);
  return made;
}

/* Returns the descriptor with the thread's new name as a new reference; NULL if
 * the thread was not renamed. */
static PyObject* new_descriptor(const struct thread_state* t,
                                PyObject* thread) {
  PyObject* name = new_name(t, thread);
  PyObject* made = name ? descriptor_of(t, name) : NULL;
  Py_XDECREF(name);
  PyErr_Clear();
  return made;
}

/* --- The end of a thread -------------------------------------------------- */

static const char kGuard[] = "stretto.thread";

struct guard {
  const struct thread_state* state; /* Only compared, it may be freed. */
  PyObject* thread;
};

static uint32_t running_slots(void) {
  uint32_t mask = 0;
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    mask |= (uint32_t)(st_slot_running(slot) != 0) << slot;
  return mask;
}

static void keep(const struct thread_state* t, PyObject* thread) {
  uint32_t slots = running_slots();
  PyObject* made =
      slots && kept_count < MAX_KEPT ? new_descriptor(t, thread) : NULL;
  if (made)
    kept[kept_count++] = (struct kept){made, slots};
}

/* The dict is also cleared by other threads, at the end of the interpreter and
 * in the child of a fork. */
static void on_thread_end(PyObject* capsule) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  struct guard* g = PyCapsule_GetPointer(capsule, kGuard);
  if (st_own.state && st_own.state == g->state)
    keep(st_own.state, g->thread);
  Py_DECREF(g->thread);
  PyMem_RawFree(g);
  PyErr_Restore(type, value, traceback);
}

static PyObject* make_guard(struct thread_state* t) {
  struct guard* g = PyMem_RawCalloc(1, sizeof *g);
  PyObject* thread = NULL;
  if (g && t->thread && PyWeakref_Check(t->thread) &&
      PyWeakref_GetRef(t->thread, &thread) < 0)
    PyErr_Clear();
  if (!g)
    return NULL;
  /* The thread is alive as long as its state in Python, so that this reference
   * prolongs nothing. */
  *g = (struct guard){t, thread ? thread : Py_NewRef(Py_None)};
  PyObject* capsule = PyCapsule_New(g, kGuard, on_thread_end);
  if (!capsule) {
    Py_DECREF(g->thread);
    PyMem_RawFree(g);
  }
  return capsule;
}

/* Watches the calling thread, whose state is `t`. */
static void watch(struct thread_state* t) {
  if (id_of(t) == (uint64_t)getpid())
    return;
  PyObject* dict = PyThreadState_GetDict();
  PyObject* capsule = dict ? make_guard(t) : NULL;
  if (capsule && PyDict_SetItemString(dict, kGuard, capsule) < 0)
    PyErr_Clear();
  Py_XDECREF(capsule);
  PyErr_Clear();
}

/* --- The end of a session ------------------------------------------------- */

static bool append_new(PyObject* list, PyObject* descriptor) {
  bool ok = !descriptor || PyList_Append(list, descriptor) == 0;
  Py_XDECREF(descriptor);
  return ok;
}

/* Moves the descriptors for a session from `kept` to the list. */
static bool take_kept(PyObject* list, uint32_t slot) {
  int left = 0;
  bool ok = true;
  for (int i = 0; i < kept_count; i++) {
    struct kept k = kept[i];
    if (k.slots & slot)
      ok = PyList_Append(list, k.descriptor) == 0 && ok;
    k.slots &= ~slot;
    if (k.slots)
      kept[left++] = k;
    else
      Py_DECREF(k.descriptor);
  }
  kept_count = left;
  return ok;
}

static void append_running(struct thread_state* t, void* list) {
  PyObject* thread = NULL;
  /* The kernel may list a thread a little longer than Python: its last name is
   * in `kept`. */
  if (t->thread && PyWeakref_Check(t->thread) &&
      PyWeakref_GetRef(t->thread, &thread) <= 0) {
    PyErr_Clear();
    return;
  }
  if (!append_new(list, new_descriptor(t, thread)))
    PyErr_Clear();
  Py_XDECREF(thread);
}

static PyObject* renamed_threads(PyObject* Py_UNUSED(module),
                                 PyObject* argument) {
  int64_t slot = 0;
  if (!st_bind_integer(argument, "slot", 0, MAX_INSTANCES - 1, &slot))
    return NULL;
  PyObject* list = PyList_New(0);
  if (list && !take_kept(list, 1u << slot))
    Py_CLEAR(list);
  if (list)
    thread_states_visit(append_running, list);
  return list;
}

void thread_renames_forget(void) {
  while (kept_count)
    Py_DECREF(kept[--kept_count].descriptor);
}

static PyMethodDef kFunctions[] = {
    {"renamed_threads", renamed_threads, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(thread_renames) {
  thread_states_set_watch(watch);
  return PyModule_AddFunctions(module, kFunctions);
}
