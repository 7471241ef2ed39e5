/* CPython declares the structures below only for sources that define this
 * macro. */
#define Py_BUILD_CORE 1
#include "hooks/python_layout.h"

#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#endif

#if PY_VERSION_HEX >= 0x030D0000
#define FRAME_CODE f_executable
#else
#define FRAME_CODE f_code
#endif

#if PY_VERSION_HEX >= 0x030E0000
enum { CODE_TAG = 3, FOREIGN = FRAME_OWNED_BY_INTERPRETER };
#if PY_VERSION_HEX >= 0x030F0000
enum { LAST_OWNER = FOREIGN };
#else
enum { LAST_OWNER = FRAME_OWNED_BY_CSTACK };
#endif
#elif PY_VERSION_HEX >= 0x030C0000
enum { CODE_TAG = 0, FOREIGN = FRAME_OWNED_BY_CSTACK, LAST_OWNER = FOREIGN };
#else
enum { CODE_TAG = 0, LAST_OWNER = FRAME_OWNED_BY_FRAME_OBJECT };
enum { FOREIGN = LAST_OWNER + 1 };
#endif

const struct st_stack_layout st_python_layout = {
    .thread_next = offsetof(PyThreadState, next),
    .thread_id = offsetof(PyThreadState, id),
    .thread_native_id = offsetof(PyThreadState, native_thread_id),
#if PY_VERSION_HEX >= 0x030D0000
    .thread_frame = offsetof(PyThreadState, current_frame),
#else
    .thread_frame = offsetof(PyThreadState, cframe),
    .control_frame = offsetof(_PyCFrame, current_frame),
    .has_control_frame = true,
#endif
    .thread_chunk = offsetof(PyThreadState, datastack_chunk),
    .frame_code = offsetof(_PyInterpreterFrame, FRAME_CODE),
    .frame_previous = offsetof(_PyInterpreterFrame, previous),
    .frame_owner = offsetof(_PyInterpreterFrame, owner),
#if PY_VERSION_HEX >= 0x030D0000
    .frame_instruction = offsetof(_PyInterpreterFrame, instr_ptr),
#else
    .frame_instruction = offsetof(_PyInterpreterFrame, prev_instr),
#endif
    .first_foreign_owner = FOREIGN,
    .last_owner = LAST_OWNER,
    .code_tag = CODE_TAG,
};

uint64_t st_python_threads(void) {
  return (uint64_t)(uintptr_t)&PyInterpreterState_Main()->threads.head;
}

struct st_address_range st_python_gil(void) {
  struct st_address_range range = {0};
#if PY_VERSION_HEX >= 0x030C0000
  range.start = (uint64_t)(uintptr_t)PyInterpreterState_Main()->ceval.gil;
  range.size = sizeof(struct _gil_runtime_state);
#endif
  return range;
}

static struct st_stack_frame python_call(_PyInterpreterFrame* f) {
  while (f && f->owner >= FOREIGN)
    f = f->previous;
  struct st_stack_frame frame = {.address = (uint64_t)(uintptr_t)f};
  if (f) {
    memcpy(&frame.code, &f->FRAME_CODE, sizeof frame.code);
    frame.code &= ~(uint64_t)CODE_TAG;
  }
  return frame;
}

struct st_stack_frame st_python_frame(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030D0000
  return python_call(thread->current_frame);
#else
  return python_call(thread->cframe ? thread->cframe->current_frame : NULL);
#endif
}

struct st_stack_frame st_python_caller(struct st_stack_frame frame) {
  _PyInterpreterFrame* f = (_PyInterpreterFrame*)(uintptr_t)frame.address;
  return python_call(f ? f->previous : NULL);
}

void st_python_rearm(PyObject* code) {
#if PY_VERSION_HEX >= 0x030C0000
  /* The store may be relaxed: the thread that reads the version uses no other
   * data with it.  What that thread does next is ordered by the GIL. */
  __atomic_store_n(&((PyCodeObject*)code)->_co_instrumentation_version, 0,
                   __ATOMIC_RELAXED);
#else
  (void)code;
#endif
}
