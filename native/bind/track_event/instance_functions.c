/* Python functions that start, stop and flush the slots of session_slots.h, and
 * count their events.
 *
 * The client (stretto.client.track_event) decides what a slot records, by the
 * bits of the categories; these functions only start and stop slots.  All run
 * with the GIL.
 */
#include "bind/common/arguments.h"
#include "bind/data_path/arbiter.h"
#include "bind/track_event/open_begins.h"
#include "bind/track_event/process_track.h"
#include "bind/track_event/thread_renames.h"
#include "bind/track_event/thread_state.h"
#include "core/session_slots.h"

ST_BIND_SIGNATURE(kStart, 3, "start_instance", "slot", "arbiter",
                  "target_buffer", "policy", "filter_annotations");

static PyObject* start_instance(PyObject* Py_UNUSED(module),
                                PyObject* const* args, Py_ssize_t count,
                                PyObject* kwnames) {
  PyObject* given[5];
  int64_t slot = 0, policy = ST_DROP;
  uint32_t buffer = 0;
  if (!st_bind_arguments(&kStart, args, count, kwnames, given) ||
      !st_bind_integer(given[0], "slot", 0, MAX_INSTANCES - 1, &slot) ||
      !st_bind_target_buffer(given[2], &buffer) ||
      !st_bind_integer(given[3], "policy", ST_STALL, ST_STALL_THEN_DROP,
                       &policy))
    return NULL;
  struct st_arbiter* arbiter = st_bind_arbiter(given[1]);
  if (!arbiter)
    return NULL;
  struct st_session session = {
      .arbiter = arbiter,
      .owner = Py_NewRef(given[1]),
      .target_buffer = buffer,
      .policy = (enum st_exhausted_policy)policy,
      .filter_annotations = given[4] && PyObject_IsTrue(given[4])};
  open_begins_forget_ended_sessions();
  if (st_slot_start((int)slot, &session))
    Py_RETURN_NONE;
  Py_DECREF(given[1]);
  return PyErr_Format(PyExc_ValueError, "slot %d is in use: stop it first",
                      (int)slot);
}

/* Converts a Python argument to a slot, and calls `act` with the slot. */
static PyObject* with_slot(PyObject* argument, void (*act)(int slot)) {
  int64_t slot = 0;
  if (!st_bind_integer(argument, "slot", 0, MAX_INSTANCES - 1, &slot))
    return NULL;
  act((int)slot);
  Py_RETURN_NONE;
}

static void stop(int slot) {
  PyObject* arbiter = st_slot_stop(slot);
  thread_states_reap();
  thread_states_drop_instance(slot);
  Py_XDECREF(arbiter);
}

static PyObject* stop_instance(PyObject* Py_UNUSED(module),
                               PyObject* argument) {
  return with_slot(argument, stop);
}

static PyObject* clear_instance(PyObject* Py_UNUSED(module),
                                PyObject* argument) {
  return with_slot(argument, thread_states_clear_state);
}

static PyObject* flush_instance(PyObject* Py_UNUSED(module),
                                PyObject* argument) {
  return with_slot(argument, thread_states_flush);
}

static PyObject* instance_counts(PyObject* Py_UNUSED(module),
                                 PyObject* argument) {
  int64_t slot = 0;
  if (!st_bind_integer(argument, "slot", 0, MAX_INSTANCES - 1, &slot))
    return NULL;
  uint64_t written, lost;
  thread_states_count((int)slot, &written, &lost);
  return Py_BuildValue("(KK)", (unsigned long long)written,
                       (unsigned long long)lost);
}

static PyObject* after_fork_in_child(PyObject* Py_UNUSED(module),
                                     PyObject* Py_UNUSED(unused)) {
  PyObject* arbiters[MAX_INSTANCES];
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    arbiters[slot] = st_slot_stop(slot);
  st_process_track_forget();
  thread_states_after_fork();
  thread_renames_forget();
  for (int slot = 0; slot < MAX_INSTANCES; slot++)
    Py_XDECREF(arbiters[slot]);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    ST_BIND_KEYWORDS("start_instance", start_instance, NULL),
    {"stop_instance", stop_instance, METH_O, NULL},
    {"clear_instance", clear_instance, METH_O, NULL},
    {"flush_instance", flush_instance, METH_O, NULL},
    {"instance_counts", instance_counts, METH_O, NULL},
    {"after_fork_in_child", after_fork_in_child, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(instance_functions) {
  thread_states_install_fork_handler();
  if (PyModule_AddIntConstant(module, "MAX_INSTANCES", MAX_INSTANCES) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
