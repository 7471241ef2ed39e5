/* What the files of the extension `stretto._native` share.
 *
 * The bindings only convert arguments: every type here is a thin shell around
 * one struct of native/core, and each .c file holds one Python type.  A type
 * is added to the module by its st_bind_add_* function, from the list in
 * module.c.
 *
 * Life cycle: an object is complete when tp_new returns, and keeps strong
 * references to the objects whose core structs its own one points to:
 *
 *   TraceWriter -> Arbiter -> ProducerEndpointCore -> BufferTable
 *                          -> SendQueue <- IpcThread      ^
 *                                         Readback -------+
 *
 * So a struct got from an accessor is good for as long as a reference to its
 * object is held.
 *
 * Threads: the GIL is released around everything that copies much data or
 * may wait, and never taken while a mutex of the core is held.
 *
 * Only public API of CPython 3.11 and later is used here.
 */
#ifndef STRETTO_BIND_COMMON_BIND_H_
#define STRETTO_BIND_COMMON_BIND_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/arbiter.h"
#include "core/fork_guard.h"
#include "core/producer_endpoint.h"
#include "core/send_queue.h"
#include "core/trace_writer.h"

/* --- the module --- */

struct st_ipc_thread_object;

/* One per interpreter; reached from a type of the module. */
struct st_bind_state {
  struct st_ipc_thread_object* running_threads; /* linked by next */
};

/* State of the module that `type` (one of ours) was made for. */
struct st_bind_state* st_bind_state(PyTypeObject* type);

/* Makes a heap type from its spec and adds it under its name.  -1: error. */
int st_bind_add_type(PyObject* module, PyType_Spec* spec);

/* True if `object` was made by the type whose deallocator is `dealloc`; our
 * types can't be subclassed, so that it names the type in any interpreter.
 * Otherwise sets TypeError: "expected a `expected`, not a ...". */
bool st_bind_check(PyObject* object, destructor dealloc, const char* expected);

/* Whether Python runs with -X dev; -1: error set. */
int st_bind_dev_mode(void);

/* One per file, in the order of module.c.  -1: error set. */
int st_bind_add_buffer_table(PyObject* module);
int st_bind_add_readback(PyObject* module);
int st_bind_add_producer_endpoint(PyObject* module);
int st_bind_add_send_queue(PyObject* module);
int st_bind_add_ipc_thread(PyObject* module);
int st_bind_add_arbiter(PyObject* module);
int st_bind_add_trace_writer(PyObject* module);
int st_bind_add_misc(PyObject* module);
int st_bind_add_request_key(PyObject* module);
int st_bind_add_trace_slices(PyObject* module);
int st_bind_add_track_event(PyObject* module);
int st_bind_add_message_writer(PyObject* module);
int st_bind_add_message_decoder(PyObject* module);
int st_bind_add_message_filter(PyObject* module);

/* --- core structs behind objects; NULL with TypeError for other types --- */

struct st_buffer_table* st_bind_buffer_table(PyObject* object);
struct st_send_queue* st_bind_send_queue(PyObject* object);
struct st_producer_endpoint* st_bind_producer_endpoint(PyObject* object);
struct st_arbiter* st_bind_arbiter(PyObject* object);
struct st_trace_writer* st_bind_trace_writer(PyObject* object);

/* Packets that are written as messages of unknown size.  Between begin and end
 * the writer is busy: it drops other packets.  Begin gives NULL, without an
 * exception, if it is closed or busy already; end may stall as begin may. */
bool st_bind_is_trace_writer(PyObject* object);
struct st_message* st_bind_trace_writer_begin(PyObject* object);
void st_bind_trace_writer_end(PyObject* object);

/* Gives the endpoint private memory of its own, which lives as long as the
 * endpoint.  NULL with an exception set. */
const struct st_shm* st_bind_endpoint_make_memory(PyObject* endpoint,
                                                  size_t size,
                                                  size_t page_size);

/* A table has one reader at a time.  Lock is called with the GIL, and lets go
 * of it only if it has to wait: getting the GIL back from a busy thread costs
 * the switch interval, 5 ms.  Nobody waits for this lock with the GIL. */
void st_bind_table_lock_reader(PyObject* table);
void st_bind_table_unlock_reader(PyObject* table);

/* --- arguments (arguments.c) --- */

struct st_bind_signature {
  const char* function;
  const char* const* names; /* `max` of them */
  int required, max;
};

/* Sorts positional and keyword arguments of a FASTCALL function into
 * out[0..max); missing optional ones are NULL.  False: TypeError set. */
bool st_bind_arguments(const struct st_bind_signature* signature,
                       PyObject* const* args, Py_ssize_t count,
                       PyObject* kwnames, PyObject** out);

/* The same for tp_new. */
bool st_bind_new_arguments(const struct st_bind_signature* signature,
                           PyObject* args, PyObject* kwargs, PyObject** out);

/* An int from min to max, else ValueError that names the argument and the
 * range (TypeError if it is no int at all).  A NULL value leaves *out. */
bool st_bind_integer(PyObject* value, const char* name, int64_t min,
                     int64_t max, int64_t* out);

/* A uint16_t id from 1 up. */
bool st_bind_id16(PyObject* value, const char* name, uint16_t* out);

/* A buffer's id, or a reservation << 16. */
bool st_bind_target_buffer(PyObject* value, uint32_t* out);

/* An open descriptor; -1 stands for none and is allowed if `optional`. */
bool st_bind_fd(PyObject* value, const char* name, bool optional, int* out);

/* A contiguous bytes-like object, to be released by PyBuffer_Release. */
bool st_bind_bytes(PyObject* value, const char* name, Py_buffer* out);

/* A tuple, for PyArg_ParseTuple; else TypeError. */
static inline bool st_bind_is_row(PyObject* row) {
  if (PyTuple_Check(row))
    return true;
  PyErr_Format(PyExc_TypeError, "expected a tuple, not %R", row);
  return false;
}

/* --- counters, as dicts (arguments.c) --- */

/* A uint64_t field of a struct; a list of them ends with a NULL name. */
struct st_bind_counter {
  const char* name;
  size_t offset;
};

PyObject* st_bind_counters(const struct st_bind_counter* counters,
                           const void* values);
int st_bind_set_counter(PyObject* dict, const char* name, uint64_t value);

/* A row of a method table for a function of FASTCALL with keywords. */
#define ST_BIND_KEYWORDS(name, function, doc)      \
  {                                                \
    name, (PyCFunction)(void (*)(void))(function), \
        METH_FASTCALL | METH_KEYWORDS, doc         \
  }

#endif /* STRETTO_BIND_COMMON_BIND_H_ */
