#include "hooks/call_sites.h"

#include <opcode.h>

#include "core/identity_cache.h"

/* MAX_UNITS: how much code before a call is searched for the callee's name. */
enum { PROBES = 8, MAX_UNITS = 256, UNIT = 2 };

static struct st_call_site sites[ST_CALL_SITES];

static const char* const kNames[] = {
    "accept",    "acquire",     "commit",        "connect",   "do_handshake",
    "execute",   "executemany", "executescript", "fdatasync", "fetchall",
    "fetchmany", "fetchone",    "flock",         "fsync",     "getaddrinfo",
    "lockf",     "pause",       "poll",          "query",     "read",
    "readall",   "readinto",    "readline",      "readlines", "recv",
    "recv_into", "recvfrom",    "recvmsg",       "select",    "send",
    "sendall",   "sendfile",    "sendmsg",       "sendto",    "sigtimedwait",
    "sigwait",   "sleep",       "system",        "wait",      "wait3",
    "wait4",     "waitid",      "waitpid",       "write"};

static PyObject* blocking_names(void) {
  static PyObject* set;
  if (set)
    return set;
  set = PyFrozenSet_New(NULL);
  for (size_t i = 0; set && i < sizeof kNames / sizeof *kNames; i++) {
    PyObject* name = PyUnicode_InternFromString(kNames[i]);
    if (name)
      PySet_Add(set, name);
    Py_XDECREF(name);
  }
  PyErr_Clear();
  return set;
}

static bool sets_profile(PyObject* name) {
  return PyUnicode_CompareWithASCIIString(name, "setprofile") == 0 ||
         PyUnicode_CompareWithASCIIString(name, "_setprofileallthreads") == 0;
}

/* Code that may call sys.setprofile() doesn't report its calls.  While calls are
 * reported, the new profile function gets an event for the return of
 * sys.setprofile().  Without a recorder it gets none. */
bool st_code_may_block(PyObject* code) {
  PyObject* names = ((PyCodeObject*)code)->co_names;
  PyObject* set = blocking_names();
  bool found = false;
  for (Py_ssize_t i = 0; set && i < PyTuple_GET_SIZE(names); i++) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (sets_profile(name))
      return false;
    found = found || PySet_Contains(set, name) == 1;
  }
  PyErr_Clear();
  return found;
}

struct st_call_site* st_call_site_get(PyObject* code, int offset) {
  uint32_t home = st_identity_hash(code) + (uint32_t)offset * 7;
  for (uint32_t i = 0; i < PROBES; i++) {
    struct st_call_site* site = &sites[(home + i) % ST_CALL_SITES];
    if (site->code == code && site->offset == offset)
      return site;
    if (!site->code) {
      *site = (struct st_call_site){.code = code, .offset = offset};
      return site;
    }
  }
  return NULL;
}

void st_call_sites_clear(void) {
  for (uint32_t i = 0; i < ST_CALL_SITES; i++) {
    PyObject* name = sites[i].name;
    sites[i] = (struct st_call_site){0};
    Py_XDECREF(name);
  }
}

/* From here on: the name of the object that an instruction calls.
 *
 * The instructions that load the callee have the same place in the source as
 * the call itself: in `self._lock.acquire(timeout)` the place of the call, of
 * `self`, of `_lock` and of `acquire` begins at the same column, that of
 * `timeout` does not.  BEFORE_WITH and FOR_ITER have the place of the statement, so
 * the place of the instruction before them counts. */

static bool begins_at(PyObject* code, int offset, int line, int column) {
  int start, first, end, last;
  return PyCode_Addr2Location((PyCodeObject*)code, offset, &start, &first, &end,
                              &last) &&
         start == line && first == column;
}

/* Replaces *chain by `chain.name`, or by `name` if there is no chain. */
static void append(PyObject** chain, PyObject* tuple, int index) {
  PyObject* longer = NULL;
  if (index < PyTuple_GET_SIZE(tuple)) {
    PyObject* name = PyTuple_GET_ITEM(tuple, index);
    longer =
        *chain ? PyUnicode_FromFormat("%U.%U", *chain, name) : Py_NewRef(name);
  }
  PyErr_Clear();
  Py_XSETREF(*chain, longer);
}

/* Adds what one instruction loads to the chain of names. */
static void load(PyObject** chain, PyCodeObject* code, int opcode, int oparg) {
  switch (opcode) {
#ifdef PRECALL
    case PRECALL:
      return;
    case LOAD_METHOD:
    case LOAD_ATTR:
      append(chain, code->co_names, oparg);
      return;
#else
    case LOAD_ATTR:
      append(chain, code->co_names, oparg >> 1);
      return;
#endif
    case LOAD_GLOBAL:
    case LOAD_NAME:
      Py_CLEAR(*chain);
      append(chain, code->co_names, opcode == LOAD_NAME ? oparg : oparg >> 1);
      return;
    case LOAD_DEREF:
    case LOAD_FAST:
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW:
#endif
      Py_CLEAR(*chain);
      append(chain, code->co_localsplusnames, oparg);
      return;
    case CALL:
      if (*chain)
        Py_SETREF(*chain, PyUnicode_FromFormat("%U()", *chain));
      return;
    case COPY:
    case EXTENDED_ARG:
    case GET_ITER:
#ifdef KW_NAMES
    case KW_NAMES:
#endif
#ifdef LOAD_SPECIAL
    case LOAD_SPECIAL:
#endif
    case PUSH_NULL:
    case SWAP:
      return;
    default:
      Py_CLEAR(*chain);
  }
}

/* Returns whether an instruction takes the object that it calls from the
 * expression before it, or is part of such an instruction. */
static bool follows_expression(int opcode) {
#ifdef BEFORE_WITH
  if (opcode == BEFORE_WITH)
    return true;
#endif
  return opcode == FOR_ITER || opcode == GET_ITER || opcode == CACHE;
}

/* Returns what the code calls at an instruction, as a new reference.  Returns
 * NULL, without an exception, if the code does not tell. */
static PyObject* callee(PyObject* code, const uint8_t* b, int offset) {
  int line, column, end_line, end_column, place = offset;
  while (place > 0 && follows_expression(b[place]))
    place -= UNIT;
  if (!PyCode_Addr2Location((PyCodeObject*)code, place, &line, &column,
                            &end_line, &end_column) ||
      column < 0)
    return NULL;
  PyObject* chain = NULL;
  int extended = 0;
  int from = offset > MAX_UNITS * UNIT ? offset - MAX_UNITS * UNIT : 0;
  for (int i = from; i < offset; i += UNIT) {
    int oparg = extended | b[i + 1];
    extended = b[i] == EXTENDED_ARG ? oparg << 8 : 0;
    if (b[i] != CACHE && begins_at(code, i, line, column))
      load(&chain, (PyCodeObject*)code, b[i], oparg);
  }
  return chain;
}

/* Whether an instruction may be between GET_ITER and the FOR_ITER of a
 * comprehension, which is part of its function from CPython 3.12 on. */
static bool prepares_comprehension(int opcode) {
  switch (opcode) {
#ifdef LOAD_FAST_AND_CLEAR
    case LOAD_FAST_AND_CLEAR:
#endif
    case SWAP:
    case BUILD_LIST:
    case BUILD_SET:
    case BUILD_MAP:
      return true;
    default:
      return opcode == FOR_ITER || opcode == GET_ITER || opcode == CACHE;
  }
}

/* Returns the value that the instruction at `place` loads from a variable of the
 * frame, as a borrowed reference; NULL if it loads no variable. */
static PyObject* variable_at(struct st_stack_frame frame, const uint8_t* b,
                             int place) {
  PyCodeObject* code = (PyCodeObject*)(uintptr_t)frame.code;
  bool extended = place >= UNIT && b[place - UNIT] == EXTENDED_ARG;
  int index = (extended ? b[place - UNIT + 1] << 8 : 0) | b[place + 1];
  PyObject *name, *value;
  switch (b[place]) {
    case LOAD_NAME:
      return index < PyTuple_GET_SIZE(code->co_names)
                 ? st_python_global(frame,
                                    PyTuple_GET_ITEM(code->co_names, index))
                 : NULL;
    case LOAD_DEREF:
    case LOAD_FAST:
#ifdef LOAD_FAST_CHECK
    case LOAD_FAST_CHECK:
#endif
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW:
#endif
      if (index >= st_python_variables(frame))
        return NULL;
      value = st_python_variable(frame, index, &name);
      return value && PyCell_Check(value) ? PyCell_GET(value) : value;
    default:
      return NULL;
  }
}

/* Returns the name of the type of the variable that a FOR_ITER iterates over;
 * NULL if that is no variable of the frame. */
static PyObject* type_of_variable(struct st_stack_frame frame, const uint8_t* b,
                                  int offset) {
  int place = offset;
  while (place > 0 && prepares_comprehension(b[place]))
    place -= UNIT;
  PyObject* value = frame.address ? variable_at(frame, b, place) : NULL;
  return value ? PyUnicode_FromString(Py_TYPE(value)->tp_name) : NULL;
}

/* Returns the name of what is called at a place in the code, without what the
 * instruction adds to it; NULL if that isn't known. */
static PyObject* find_object(PyObject* code, const uint8_t* b, int offset,
                             struct st_stack_frame frame, bool variable_only) {
  PyObject* name =
      b[offset] == FOR_ITER ? type_of_variable(frame, b, offset) : NULL;
  return name || variable_only ? name : callee(code, b, offset);
}

static PyObject* find_name(PyObject* code, int offset,
                           struct st_stack_frame frame, bool variable_only) {
  PyObject* bytes = PyCode_GetCode((PyCodeObject*)code);
  if (!bytes)
    return NULL;
  PyObject* name = NULL;
  const uint8_t* b = (const uint8_t*)PyBytes_AS_STRING(bytes);
  if (offset >= 0 && offset < PyBytes_GET_SIZE(bytes))
    name = find_object(code, b, offset, frame, variable_only);
#ifdef BEFORE_WITH
  if (name && b[offset] == BEFORE_WITH)
    Py_SETREF(name, PyUnicode_FromFormat("%U.__enter__", name));
#endif
  if (name && b[offset] == FOR_ITER)
    Py_SETREF(name, PyUnicode_FromFormat("%U.__next__", name));
  Py_DECREF(bytes);
  return name || variable_only ? name : PyUnicode_FromString("wait");
}

static void name_site(struct st_call_site* site, struct st_stack_frame frame,
                      bool variable_only) {
  if (!site->name) {
    site->name = find_name(site->code, site->offset, frame, variable_only);
    site->named_by_code = site->name != NULL;
  }
  PyErr_Clear();
}

PyObject* st_call_site_name(struct st_call_site* site,
                            struct st_stack_frame frame) {
  name_site(site, frame, false);
  return site->name;
}

void st_call_site_name_loop(struct st_call_site* site,
                            struct st_stack_frame frame) {
  name_site(site, frame, true);
}

PyObject* st_call_site_rename(struct st_call_site* site, PyObject* function) {
  if (!site->named_by_code)
    Py_XSETREF(site->name, Py_XNewRef(function));
  return site->name;
}
