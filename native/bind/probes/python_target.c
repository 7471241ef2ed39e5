#include "bind/probes/python_target.h"

#include "bind/common/arguments.h"
#include "probes/thread_sample.h"

/* The name of an offset, and the position of its member in st_python_layout. */
struct offset {
  const char* name;
  size_t member;
};

#define STACK(name)                                   \
  {                                                   \
#name, offsetof(struct st_python_layout, stack) + \
               offsetof(struct st_stack_layout, name) \
  }
#define OTHER(name) \
  { #name, offsetof(struct st_python_layout, name) }

static const struct offset kOffsets[] = {
    STACK(thread_next),       STACK(thread_id),       STACK(thread_native_id),
    STACK(thread_frame),      STACK(thread_chunk),    STACK(control_frame),
    STACK(frame_code),        STACK(frame_previous),  STACK(frame_owner),
    STACK(frame_instruction), OTHER(code_first_line), OTHER(code_line_table),
    OTHER(code_start),        OTHER(bytes_size),      OTHER(bytes_data),
};

/* Reads dict[name], an int from 0 to `max`.  Returns false with an exception
 * set on failure. */
static bool number_of(PyObject* dict, const char* name, int64_t max,
                      int64_t* out) {
  PyObject* value = PyDict_GetItemString(dict, name);
  if (value)
    return st_bind_integer(value, name, 0, max, out);
  PyErr_Format(PyExc_KeyError, "the layout has no %s", name);
  return false;
}

/* Returns whether the offsets are within the bytes that a reader copies.  Sets
 * ValueError if not. */
static bool fits(const struct st_python_layout* layout) {
  const struct st_stack_layout* s = &layout->stack;
  enum { LAST = ST_THREAD_STATE_BYTES - 8, LAST_OF_FRAME = ST_FRAME_BYTES - 8 };
  if (s->thread_next <= LAST && s->thread_id <= LAST &&
      s->thread_native_id <= LAST && s->thread_frame <= LAST &&
      s->thread_chunk <= LAST && s->control_frame <= 8 &&
      s->frame_code <= LAST_OF_FRAME && s->frame_previous <= LAST_OF_FRAME &&
      s->frame_owner <= LAST_OF_FRAME && s->frame_instruction <= LAST_OF_FRAME)
    return true;
  PyErr_SetString(PyExc_ValueError,
                  "an offset of the layout is beyond the copied bytes");
  return false;
}

/* Reads an offset in a frame, which only some versions have: 0 if `dict` does
 * not have it.  Returns false with an exception set on failure. */
static bool optional_of(PyObject* dict, const char* name, uint16_t* out) {
  int64_t value = 0;
  if (PyDict_GetItemString(dict, name) &&
      !number_of(dict, name, ST_FRAME_BYTES - 8, &value))
    return false;
  *out = (uint16_t)value;
  return true;
}

bool st_bind_layout(PyObject* dict, struct st_python_layout* layout) {
  int64_t value, has_control, foreign, last, tag;
  uint16_t index, top;
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "layout must be a dict of offsets");
    return false;
  }
  for (size_t i = 0; i < sizeof kOffsets / sizeof *kOffsets; i++) {
    if (!number_of(dict, kOffsets[i].name, UINT16_MAX, &value))
      return false;
    uint16_t offset = (uint16_t)value;
    memcpy((char*)layout + kOffsets[i].member, &offset, sizeof offset);
  }
  if (!number_of(dict, "has_control_frame", 1, &has_control) ||
      !number_of(dict, "first_foreign_owner", UINT8_MAX, &foreign) ||
      !number_of(dict, "last_owner", UINT8_MAX, &last) ||
      !number_of(dict, "code_tag", 7, &tag) ||
      !optional_of(dict, "frame_is_entry", &layout->stack.frame_is_entry) ||
      !optional_of(dict, "frame_stacktop", &index) ||
      !optional_of(dict, "frame_stackpointer", &top))
    return false;
  layout->stack.has_control_frame = has_control;
  layout->stack.first_foreign_owner = (uint8_t)foreign;
  layout->stack.last_owner = (uint8_t)last;
  layout->stack.code_tag = (uint64_t)tag;
  layout->stack.has_stack_index = index;
  layout->stack.frame_stack_top = index ? index : top;
  return fits(layout);
}

bool st_bind_heads(PyObject* heads, struct st_python_target* target) {
  PyObject* all = PySequence_Fast(heads, "heads must be a sequence of ints");
  if (!all)
    return false;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(all);
  if (count > ST_TARGET_MAX_HEADS)
    count = ST_TARGET_MAX_HEADS;
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < count; i++) {
    int64_t address;
    ok = st_bind_integer(PySequence_Fast_GET_ITEM(all, i), "head", 0, INT64_MAX,
                         &address);
    if (ok)
      target->heads[target->head_count++] = (uint64_t)address;
  }
  Py_DECREF(all);
  return ok;
}
