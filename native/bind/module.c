/* The extension module stretto._native: registers the types and functions of
 * the folders below.
 *
 *   flows/         ids and hooks of flow tracing
 *   track_event/   categories, slices, tracks: one event to each session
 *   data_path/     trace buffers, shared memory, queues    protozero/  messages
 *   common/        arguments, text, errors
 *
 * Folders use those below them only.  The bindings only convert arguments: a
 * type is a thin shell around one struct of native/core, and each .c file holds
 * one Python type, with a header for the files that use it.
 *
 * Life cycle: an object is complete when tp_new returns, and keeps strong
 * references to the objects whose core structs its own one points to:
 *
 *   TraceWriter -> Arbiter -> ProducerEndpointCore -> BufferTable
 *                          -> SendQueue <- IpcThread      ^
 *                                         Readback -------+
 *
 * So a struct from an accessor (st_bind_arbiter, ...) is valid as long as a
 * reference to its object is held.
 *
 * Threads: the GIL is released around everything that copies much data or may
 * wait, and never taken while a mutex of the core is held.
 */
#include "bind/common/clock.h"
#include "bind/common/descriptors.h"
#include "bind/common/module_state.h"
#include "bind/common/own_work.h"
#include "bind/common/pending_calls.h"
#include "bind/data_path/arbiter.h"
#include "bind/data_path/buffer_table.h"
#include "bind/data_path/ipc_thread.h"
#include "bind/data_path/producer_endpoint.h"
#include "bind/data_path/readback.h"
#include "bind/data_path/request_key.h"
#include "bind/data_path/send_queue.h"
#include "bind/data_path/trace_scan.h"
#include "bind/data_path/trace_slices.h"
#include "bind/data_path/trace_writer.h"
#include "bind/flows/flow_ids.h"
#include "bind/flows/message_hook.h"
#include "bind/protozero/byte_range.h"
#include "bind/protozero/decoded_field.h"
#include "bind/protozero/message_decoder.h"
#include "bind/protozero/message_field.h"
#include "bind/protozero/message_filter.h"
#include "bind/protozero/message_reader.h"
#include "bind/protozero/message_writer.h"
#include "bind/protozero/message_writer_class.h"
#include "bind/protozero/selector.h"
#include "bind/protozero/tokenizer.h"
#include "bind/protozero/typed_decoder.h"
#include "bind/track_event/argument_errors.h"
#include "bind/track_event/category.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/event_options.h"
#include "bind/track_event/event_template.h"
#include "bind/track_event/flow.h"
#include "bind/track_event/instance_functions.h"
#include "bind/track_event/misuse.h"
#include "bind/track_event/own_tracks.h"
#include "bind/track_event/process_track.h"
#include "bind/track_event/slice.h"
#include "bind/track_event/task_track.h"
#include "bind/track_event/track.h"
#include "bind/track_event/track_event_capsule.h"

typedef int (*add_function)(PyObject* module);

/* Later entries may use the types of earlier ones. */
static const add_function kParts[] = {
    st_bind_add_clock,
    st_bind_add_descriptors,
    st_bind_add_own_work,
    st_bind_add_pending_calls,
    st_bind_add_buffer_table,
    st_bind_add_readback,
    st_bind_add_producer_endpoint,
    st_bind_add_send_queue,
    st_bind_add_ipc_thread,
    st_bind_add_arbiter,
    st_bind_add_trace_writer,
    st_bind_add_request_key,
    st_bind_add_trace_scan,
    st_bind_add_trace_slices,
    st_bind_add_byte_range,
    st_bind_add_message_writer,
    st_bind_add_message_field,
    st_bind_add_message_writer_class,
    st_bind_add_message_decoder,
    st_bind_add_decoded_field,
    st_bind_add_typed_decoder,
    st_bind_add_selector,
    st_bind_add_tokenizer,
    st_bind_add_message_filter,
    st_bind_add_message_reader,
    st_bind_add_argument_errors,
    st_bind_add_process_track,
    st_bind_add_track,
    st_bind_add_own_tracks,
    st_bind_add_flow,
    st_bind_add_task_track,
    st_bind_add_misuse,
    st_bind_add_event_options,
    st_bind_add_emit,
    st_bind_add_slice,
    st_bind_add_category,
    st_bind_add_event_template,
    st_bind_add_instance_functions,
    st_bind_add_track_event_capsule,
    st_bind_add_flow_ids,
    st_bind_add_message_hook,
};

/* A process has one set of tracing instances and threads, and they hold
 * objects of one interpreter.  In others `import stretto` gets the side that
 * does nothing. */
static bool is_main_interpreter(void) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main())
    return true;
  PyErr_SetString(PyExc_ImportError,
                  "stretto._native works in the main interpreter only; trace "
                  "from there");
  return false;
}

static int module_exec(PyObject* module) {
  if (!is_main_interpreter())
    return -1;
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; i++) {
    if (kParts[i](module) < 0)
      return -1;
  }
  return 0;
}

static PyModuleDef_Slot kSlots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._native",
    .m_doc = "The data path: trace buffers, shared memory, trace writers.",
    .m_size = sizeof(struct st_bind_state),
    .m_slots = kSlots,
};

PyMODINIT_FUNC PyInit__native(void) {
  return PyModuleDef_Init(&kModule);
}
