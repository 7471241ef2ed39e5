#include "hooks/heap_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "hooks/python_layout.h"

/* The value of a code object: its life, and the number of its function. */
enum { FUNCTION_BITS = 20 };

static const char* const kSpecialNames[] = {"[no Python call]",
                                            "[another interpreter]",
                                            "[other stacks]", "[outer calls]"};

/* The function of the frame in place of the outermost frames of a stack that
 * is too deep; its number follows those of the special stacks. */
enum { OUTER_CALLS = ST_STACK_SPECIALS + 1 };

static uint64_t hash_of(PyCodeObject* code) {
  uint64_t h = (uint64_t)(uintptr_t)code->co_qualname;
  h = (h ^ (h >> 29)) * 0x9E3779B97F4A7C15u;
  h ^= (uint64_t)(uintptr_t)code->co_filename;
  h = (h ^ (h >> 29)) * 0x9E3779B97F4A7C15u;
  h = (h ^ (uint64_t)code->co_firstlineno) * 0x9E3779B97F4A7C15u;
  return h | 1;
}

static bool is_function(const struct st_heap_function* f, PyCodeObject* code) {
  return f->name == code->co_qualname && f->file == code->co_filename &&
         f->first_line == code->co_firstlineno;
}

/* Returns the number of a new function; 0 if there is no room.  Takes over the
 * references. */
static uint32_t add_function(struct st_heap_stacks* s, PyObject* name,
                             PyObject* file, int first_line) {
  if (s->function_count == s->function_capacity) {
    uint32_t capacity = s->function_capacity ? s->function_capacity * 2 : 256;
    struct st_heap_function* grown =
        s->function_count == ST_HEAP_MAX_FUNCTIONS
            ? NULL
            : realloc(s->functions, capacity * sizeof *grown);
    if (!grown)
      return 0;
    s->functions = grown;
    s->function_capacity =
        capacity < ST_HEAP_MAX_FUNCTIONS ? capacity : ST_HEAP_MAX_FUNCTIONS;
  }
  s->functions[s->function_count++] =
      (struct st_heap_function){name, file, first_line};
  return s->function_count;
}

static uint32_t function_of(struct st_heap_stacks* s, PyCodeObject* code) {
  uint64_t hash = hash_of(code);
  const struct st_address_slot* slot = st_address_table_find(&s->by_hash, hash);
  if (slot && is_function(&s->functions[slot->value - 1], code))
    return (uint32_t)slot->value;
  uint32_t number = add_function(s, code->co_qualname, code->co_filename,
                                 code->co_firstlineno);
  if (number) {
    Py_INCREF(code->co_qualname);
    Py_INCREF(code->co_filename);
    if (!slot) /* Else another function has this hash; both get numbers. */
      st_address_table_put(&s->by_hash, hash, number);
  }
  return number;
}

/* Returns the life and the function of a code object; 0 if there is no room. */
static uint64_t add_code(struct st_heap_stacks* s,
                         struct st_address_filter* filter, PyCodeObject* code) {
  uint64_t address = (uint64_t)(uintptr_t)code;
  uint64_t function = function_of(s, code);
  uint64_t value = ++s->lives << FUNCTION_BITS | function;
  if (!function || !st_address_table_put(&s->codes, address, value))
    return 0;
  st_filter_add(filter, address);
  return value;
}

void st_heap_stacks_free_code(struct st_heap_stacks* s,
                              struct st_address_filter* filter,
                              uint64_t address) {
  uint64_t value;
  if (st_address_table_take(&s->codes, address, &value))
    st_filter_remove(filter, address);
}

/* Returns the number of a frame; 0 if there is no room. */
static uint32_t frame_number(struct st_heap_stacks* s,
                             struct st_address_filter* filter,
                             struct st_stack_frame frame) {
  PyCodeObject* code = (PyCodeObject*)(uintptr_t)frame.code;
  const struct st_address_slot* slot =
      st_address_table_find(&s->codes, frame.code);
  uint64_t value = slot ? slot->value : add_code(s, filter, code);
  if (!value)
    return 0;
  int offset = st_python_instruction(frame);
  uint64_t life = value >> FUNCTION_BITS;
  uint32_t known = st_stack_table_known(s->table, life, (uint64_t)offset);
  if (known)
    return known;
  int line = offset < 0 ? code->co_firstlineno : PyCode_Addr2Line(code, offset);
  return st_stack_table_add(s->table, life, (uint64_t)offset,
                            value & ((1 << FUNCTION_BITS) - 1),
                            line < 0 ? 0 : line);
}

static uint32_t rest(struct st_heap_stacks* s) {
  s->rest++;
  return ST_STACK_REST;
}

static uint32_t number_of(struct st_heap_stacks* s,
                          struct st_address_filter* filter,
                          PyThreadState* thread) {
  uint32_t frames[ST_HEAP_MAX_DEPTH], first = ST_HEAP_MAX_DEPTH;
  struct st_stack_frame frame = st_python_frame(thread);
  for (; frame.address && first; frame = st_python_caller(frame)) {
    if (!frame.code || !PyCode_Check((PyObject*)(uintptr_t)frame.code))
      continue;
    frames[--first] = frame_number(s, filter, frame);
    if (!frames[first])
      return rest(s);
  }
  if (first == ST_HEAP_MAX_DEPTH)
    return ST_STACK_NO_PYTHON;
  if (frame.address)
    frames[0] = OUTER_CALLS;
  uint32_t number =
      st_stack_table_stack(s->table, frames + first, ST_HEAP_MAX_DEPTH - first);
  return number ? number : rest(s);
}

uint32_t st_heap_stack_number(struct st_heap_stacks* s,
                              struct st_address_filter* filter) {
  PyThreadState* thread = st_python_attached_thread();
  if (!thread)
    return ST_STACK_NO_PYTHON;
  if (PyThreadState_GetInterpreter(thread) != PyInterpreterState_Main())
    return ST_STACK_OTHER_INTERPRETER;
  return number_of(s, filter, thread);
}

/* Adds the function, the frame and the stack of a special name. */
static bool add_special(struct st_heap_stacks* s, const char* name) {
  PyObject* text = PyUnicode_FromString(name);
  PyObject* file = text ? PyUnicode_FromString("<python>") : NULL;
  if (!file) {
    Py_XDECREF(text);
    return false;
  }
  uint32_t function = add_function(s, text, file, 0);
  uint32_t frame = st_stack_table_add(s->table, 0, function, function, 0);
  if (function && frame &&
      (function == OUTER_CALLS || st_stack_table_stack(s->table, &frame, 1)))
    return true;
  PyErr_NoMemory();
  return false;
}

bool st_heap_stacks_init(struct st_heap_stacks* s) {
  *s = (struct st_heap_stacks){.codes.limit = ST_MAX_FRAMES,
                               .by_hash.limit = ST_HEAP_MAX_FUNCTIONS};
  s->table = st_stack_table_create();
  if (!s->table) {
    PyErr_NoMemory();
    return false;
  }
  for (int i = 0; i < OUTER_CALLS; i++)
    if (!add_special(s, kSpecialNames[i]))
      return false;
  return true;
}

void st_heap_stacks_clear(struct st_heap_stacks* s) {
  if (s->table)
    st_stack_table_destroy(s->table);
  st_address_table_clear(&s->codes);
  st_address_table_clear(&s->by_hash);
  *s = (struct st_heap_stacks){0};
}

void st_heap_functions_free(struct st_heap_function* functions,
                            uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    Py_DECREF(functions[i].name);
    Py_DECREF(functions[i].file);
  }
  free(functions);
}
