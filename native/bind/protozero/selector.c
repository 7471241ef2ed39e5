#include "bind/protozero/selector.h"

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/protozero/byte_range.h"
#include "bind/protozero/message_value.h"
#include "core/decoder.h"

enum { MAX_FIELDS = 64, MAX_LEVELS = 32, NO_COLUMN = -1 };

struct node {
  uint32_t number;
  enum value_kind kind;
  uint32_t wire_type;
  bool is_repeated;
  /* The index of the field's value in the result tuple, or NO_COLUMN. */
  int column;
  int child_count;
  struct node* children;
};

typedef struct {
  PyObject_HEAD
  struct node root;
  Py_ssize_t columns;
} SelectorObject;

static PyTypeObject* selector_type;

static void node_free(struct node* node) {
  for (int i = 0; i < node->child_count; i++)
    node_free(&node->children[i]);
  PyMem_Free(node->children);
  *node = (struct node){0};
}

static bool read_children(struct node* node, PyObject* rows, Py_ssize_t columns,
                          int level);

static bool read_node(struct node* node, PyObject* row, Py_ssize_t columns,
                      int level) {
  const char* kind;
  int is_repeated;
  PyObject* rows;
  if (!st_bind_is_row(row) ||
      !PyArg_ParseTuple(row, "IspiO!", &node->number, &kind, &is_repeated,
                        &node->column, &PyList_Type, &rows))
    return false;
  node->kind = value_kind_named(kind);
  node->is_repeated = is_repeated;
  if (node->kind == VALUE_KINDS || node->column < NO_COLUMN ||
      node->column >= columns) {
    PyErr_Format(PyExc_ValueError, "no such kind or column: %R", row);
    return false;
  }
  node->wire_type = value_wire_type(node->kind);
  return read_children(node, rows, columns, level + 1);
}

static bool read_children(struct node* node, PyObject* rows, Py_ssize_t columns,
                          int level) {
  Py_ssize_t count = PyList_GET_SIZE(rows);
  if (count > MAX_FIELDS || level > MAX_LEVELS) {
    PyErr_Format(PyExc_ValueError,
                 "at most %d fields of one message, %d levels deep: select "
                 "fewer at once",
                 MAX_FIELDS, MAX_LEVELS);
    return false;
  }
  node->children = PyMem_Calloc((size_t)count + 1, sizeof *node->children);
  if (!node->children) {
    PyErr_NoMemory();
    return false;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* row = PyList_GetItemRef(rows, i);
    node->child_count++;
    bool done = row && read_node(&node->children[i], row, columns, level);
    Py_XDECREF(row);
    if (!done)
      return false;
  }
  return true;
}

static PyObject* value_of(const struct node* node, const struct st_field* f) {
  switch (node->kind) {
    case VALUE_STRING:
      return value_string(f->data, f->size);
    case VALUE_BYTES:
    case VALUE_MESSAGE:
      return PyBytes_FromStringAndSize((const char*)f->data,
                                       (Py_ssize_t)f->size);
    default:
      return value_from_bits(node->kind, f->value);
  }
}

static bool add_value(PyObject* list, PyObject* value) {
  bool done = value && PyList_Append(list, value) == 0;
  Py_XDECREF(value);
  return done;
}

static bool add_packed(PyObject* list, const struct node* node,
                       const struct st_field* field) {
  const uint8_t* end = field->data + field->size;
  for (const uint8_t* p = field->data; p < end;) {
    uint64_t bits;
    p = st_get_element(p, end, node->wire_type, &bits);
    if (!p)
      /* The next element of the packed field is incomplete.  The elements
       * before it count. */
      return true;
    if (!add_value(list, value_from_bits(node->kind, bits)))
      return false;
  }
  return true;
}

static bool add_elements(PyObject* list, const struct node* node,
                         const struct st_field* f) {
  if (f->wire_type == node->wire_type)
    return add_value(list, value_of(node, f));
  return f->wire_type != ST_WIRE_DELIMITED || add_packed(list, node, f);
}

static PyObject* list_of(const struct node* node, const uint8_t* data,
                         size_t size) {
  PyObject* list = PyList_New(0);
  struct st_decoder decoder;
  struct st_field f;
  st_decoder_init(&decoder, data, size);
  while (list && st_decoder_next(&decoder, &f)) {
    if (f.number == node->number && !add_elements(list, node, &f))
      Py_CLEAR(list);
  }
  return list;
}

/* Finds for each child of `node` its last field in the message. */
static void find_fields(const struct node* node, const uint8_t* data,
                        size_t size, struct st_field* last) {
  struct st_decoder decoder;
  struct st_field f;
  st_decoder_init(&decoder, data, size);
  while (st_decoder_next(&decoder, &f)) {
    for (int i = 0; i < node->child_count; i++) {
      const struct node* child = &node->children[i];
      if (child->number == f.number &&
          (f.wire_type == child->wire_type || child->is_repeated))
        last[i] = f;
    }
  }
}

static bool fill(const struct node* node, const uint8_t* data, size_t size,
                 PyObject* row) {
  struct st_field last[MAX_FIELDS];
  memset(last, 0, (size_t)node->child_count * sizeof *last);
  find_fields(node, data, size, last);
  for (int i = 0; i < node->child_count; i++) {
    const struct node* child = &node->children[i];
    const struct st_field* f = &last[i];
    if (child->column != NO_COLUMN) {
      PyObject* value = child->is_repeated ? list_of(child, data, size)
                        : f->number        ? value_of(child, f)
                                           : Py_NewRef(Py_None);
      if (!value)
        return false;
      PyTuple_SET_ITEM(row, child->column, value);
    }
    if (child->child_count && !fill(child, f->data, f->size, row))
      return false;
  }
  return true;
}

bool is_selector(PyObject* object) {
  return Py_TYPE(object) == selector_type;
}

PyObject* selector_row(PyObject* self, const uint8_t* data, size_t size) {
  const SelectorObject* s = (SelectorObject*)self;
  PyObject* row = PyTuple_New(s->columns);
  if (row && !fill(&s->root, data, size, row))
    Py_CLEAR(row);
  return row;
}

static bool has_every_column_once(const struct node* node, uint8_t* seen) {
  for (int i = 0; i < node->child_count; i++) {
    const struct node* child = &node->children[i];
    if (child->column != NO_COLUMN && seen[child->column]++)
      return false;
    if (!has_every_column_once(child, seen))
      return false;
  }
  return true;
}

static bool check_columns(const SelectorObject* s) {
  uint8_t* seen = PyMem_Calloc((size_t)s->columns + 1, 1);
  bool good = seen && has_every_column_once(&s->root, seen);
  for (Py_ssize_t i = 0; good && i < s->columns; i++)
    good = seen[i] == 1;
  PyMem_Free(seen);
  if (!good)
    PyErr_SetString(PyExc_ValueError, "each column must be filled once");
  return good;
}

static PyObject* selector_new(PyTypeObject* type, PyObject* args,
                              PyObject* kwargs) {
  Py_ssize_t columns;
  PyObject* rows;
  static char* names[] = {"columns", "tree", NULL};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO!", names, &columns,
                                   &PyList_Type, &rows))
    return NULL;
  SelectorObject* s = (SelectorObject*)type->tp_alloc(type, 0);
  if (!s)
    return NULL;
  s->columns = columns;
  if (columns < 0 || !read_children(&s->root, rows, columns, 0) ||
      !check_columns(s)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "columns must not be negative");
    Py_CLEAR(s);
  }
  return (PyObject*)s;
}

static void selector_dealloc(PyObject* self) {
  node_free(&((SelectorObject*)self)->root);
  st_bind_free(self);
}

static PyObject* selector_call(PyObject* self, PyObject* args,
                               PyObject* kwargs) {
  PyObject* data;
  static char* names[] = {"data", NULL};
  struct byte_range range;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &data) ||
      !byte_range_from(data, &range))
    return NULL;
  PyObject* row = selector_row(self, range.data, range.size);
  byte_range_clear(&range);
  return row;
}

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "Some fields of a message as a tuple: selector(data)."},
    {Py_tp_new, selector_new},
    {Py_tp_dealloc, selector_dealloc},
    {Py_tp_call, selector_call},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("Selector", SelectorObject, Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(selector) {
  return st_bind_keep_type(module, &kSpec, &selector_type);
}
