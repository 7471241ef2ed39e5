/* Python type MessageWriter: an append-only message.
 *
 * A writer is a handle on an open message (message_output.h). Writing to a
 * message that has ended, or whose struct another message has reused, is
 * misuse: under -X dev it raises; otherwise it is counted and writes nothing.
 *
 * Each message needs a writer object, so freed objects are kept in a free list.
 */
#include "bind/protozero/message_writer.h"

#include "bind/common/arguments.h"
#include "bind/common/dev_mode.h"
#include "bind/common/errors.h"
#include "bind/common/with_methods.h"

enum { MAX_FREE = 64 };

PyTypeObject* message_writer_type;

static struct message_writer* free_list[MAX_FREE];
static int free_count;
static uint64_t misuse_count;
static bool misuse_raises;

static void writer_dealloc(PyObject* self);

/* Returns whether the type is MessageWriter or a class of make_writer_class().
 * Objects of a subclass made in Python may be larger. */
static bool is_plain(const PyTypeObject* type) {
  return type->tp_dealloc == writer_dealloc;
}

static struct message_writer* writer_alloc(PyTypeObject* type) {
  if (!free_count || !is_plain(type))
    return (struct message_writer*)type->tp_alloc(type, 0);
  struct message_writer* w = free_list[--free_count];
  return (struct message_writer*)PyObject_Init((PyObject*)w, type);
}

static void writer_dealloc(PyObject* self) {
  struct message_writer* w = (struct message_writer*)self;
  PyTypeObject* type = Py_TYPE(self);
  if (w->output)
    output_release(w->output);
  if (ST_FREE_LISTS && free_count < MAX_FREE && is_plain(type))
    free_list[free_count++] = w;
  else
    type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* new_root(PyTypeObject* type, PyObject* destination) {
  struct message_writer* w = writer_alloc(type);
  if (!w)
    return NULL;
  w->output = output_new(destination);
  if (!w->output) {
    Py_DECREF(w);
    return NULL;
  }
  w->at = &w->output->root;
  w->serial = w->at->serial;
  return (PyObject*)w;
}

ST_BIND_SIGNATURE(kNewSignature, 0, "MessageWriter", "destination");

static PyObject* writer_vectorcall(PyObject* type, PyObject* const* args,
                                   size_t nargsf, PyObject* kwnames) {
  PyObject* destination = NULL;
  if (!PyVectorcall_NARGS(nargsf) && !kwnames)
    return new_root((PyTypeObject*)type, NULL);
  if (!st_bind_arguments(&kNewSignature, args, PyVectorcall_NARGS(nargsf),
                         kwnames, &destination))
    return NULL;
  return new_root((PyTypeObject*)type, destination);
}

static PyObject* writer_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  PyObject* destination;
  if (!st_bind_new_arguments(&kNewSignature, args, kwargs, &destination))
    return NULL;
  return new_root(type, destination);
}

void message_writer_finish_type(PyTypeObject* type) {
  type->tp_vectorcall = writer_vectorcall;
}

static bool is_current(const struct message_writer* w) {
  return w->at->serial == w->serial && !w->at->message.finalized;
}

/* Counts a misuse of the writer.  Sets an exception if misuse raises (-X dev).
 * Always returns false. */
static bool misused(const struct message_writer* w) {
  misuse_count++;
  if (!misuse_raises)
    return false;
  PyObject* name =
      PyObject_GetAttrString((PyObject*)Py_TYPE(w), "__qualname__");
  if (name && w->output->busy && is_current(w))
    set_protocol_error(
        "%U is being written to already, by another thread or by the file "
        "that it goes to",
        name);
  else if (name)
    set_protocol_error("%U has ended: open a new message and write to that",
                       name);
  Py_XDECREF(name);
  return false;
}

bool message_writer_is_open(const struct message_writer* w) {
  return (is_current(w) && !w->output->busy) || misused(w);
}

/* The serial of a writer that was opened in an ended message.  No message has
 * this serial, so the writer counts as ended, too. */
enum { NEVER_CURRENT = 0 };

PyObject* message_writer_open(PyTypeObject* type, struct message_writer* parent,
                              uint32_t field) {
  bool is_open = message_writer_is_open(parent);
  if (!is_open && PyErr_Occurred())
    return NULL;
  struct message_writer* w = writer_alloc(type);
  if (!w)
    return NULL;
  w->output = parent->output;
  w->output->writers++;
  w->at = parent->at;
  w->serial = NEVER_CURRENT;
  if (!is_open)
    return (PyObject*)w;
  struct st_arena_message* at =
      output_begin_nested(w->output, parent->at, field);
  if (!at) {
    Py_DECREF(w);
    return NULL;
  }
  w->at = at;
  w->serial = at->serial;
  return (PyObject*)w;
}

bool message_writer_append(struct message_writer* w, const void* data,
                           size_t size) {
  if (!message_writer_is_open(w))
    return !PyErr_Occurred();
  return output_append(w->output, &w->at->message, data, size);
}

bool message_writer_append_bytes(struct message_writer* w, uint32_t field,
                                 const void* data, size_t size) {
  uint8_t header[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_tag(header, field, ST_WIRE_DELIMITED);
  end = st_put_varint(end, size);
  size_t header_size = (size_t)(end - header);
  uint8_t* p = size && size <= ST_MAX_MESSAGE_SIZE
                   ? message_writer_room(w, header_size + size)
                   : NULL;
  if (p) {
    memcpy(p, header, header_size);
    memcpy(p + header_size, data, size);
    st_message_advance(&w->at->message, p + header_size + size);
    return true;
  }
  if (!message_writer_is_open(w))
    return !PyErr_Occurred();
  return output_append_bytes(w->output, &w->at->message, field, data, size);
}

static struct message_writer* self_of(PyObject* self) {
  return (struct message_writer*)self;
}

static bool field_and_value(const char* function, PyObject* const* args,
                            Py_ssize_t count, uint32_t* field) {
  int64_t number = 0;
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "%s() takes a field number and a value",
                 function);
    return false;
  }
  if (!st_bind_integer(args[0], "number", 1, ST_MAX_NUMBER, &number))
    return false;
  *field = (uint32_t)number;
  return true;
}

/* Converts a Python int to its low 64 bits. */
static bool low_bits(PyObject* value, uint64_t* bits) {
  PyObject* integer = PyNumber_Index(value);
  if (!integer)
    return false;
  *bits = PyLong_AsUnsignedLongLongMask(integer);
  Py_DECREF(integer);
  return !(*bits == UINT64_MAX && PyErr_Occurred());
}

static PyObject* none_if(bool done) {
  return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject* append_number(const char* function, PyObject* self,
                               PyObject* const* args, Py_ssize_t count,
                               uint32_t wire_type) {
  uint32_t field;
  uint64_t bits;
  if (!field_and_value(function, args, count, &field) ||
      !low_bits(args[1], &bits))
    return NULL;
  uint8_t bytes[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_tag(bytes, field, wire_type);
  if (wire_type == ST_WIRE_VARINT) {
    end = st_put_varint(end, bits);
  } else {
    memcpy(end, &bits, sizeof bits);
    end += wire_type == ST_WIRE_FIXED32 ? 4 : 8;
  }
  return none_if(
      message_writer_append(self_of(self), bytes, (size_t)(end - bytes)));
}

static PyObject* append_varint(PyObject* self, PyObject* const* args,
                               Py_ssize_t count) {
  return append_number("append_varint", self, args, count, ST_WIRE_VARINT);
}

static PyObject* append_fixed32(PyObject* self, PyObject* const* args,
                                Py_ssize_t count) {
  return append_number("append_fixed32", self, args, count, ST_WIRE_FIXED32);
}

static PyObject* append_fixed64(PyObject* self, PyObject* const* args,
                                Py_ssize_t count) {
  return append_number("append_fixed64", self, args, count, ST_WIRE_FIXED64);
}

static PyObject* append_bytes(PyObject* self, PyObject* const* args,
                              Py_ssize_t count) {
  uint32_t field;
  if (!field_and_value("append_bytes", args, count, &field))
    return NULL;
  PyObject* encoded =
      PyUnicode_Check(args[1])
          ? PyUnicode_AsEncodedString(args[1], "utf-8", "surrogateescape")
          : Py_NewRef(args[1]);
  Py_buffer bytes;
  bool done = false;
  if (encoded && st_bind_bytes(encoded, "data", &bytes)) {
    done = message_writer_append_bytes(self_of(self), field, bytes.buf,
                                       (size_t)bytes.len);
    PyBuffer_Release(&bytes);
  }
  Py_XDECREF(encoded);
  return none_if(done);
}

static PyObject* append_raw(PyObject* self, PyObject* data) {
  Py_buffer bytes;
  if (!st_bind_bytes(data, "data", &bytes))
    return NULL;
  bool done =
      message_writer_append(self_of(self), bytes.buf, (size_t)bytes.len);
  PyBuffer_Release(&bytes);
  return none_if(done);
}

static PyObject* nested(PyObject* self, PyObject* const* args,
                        Py_ssize_t count) {
  uint32_t field;
  if (!field_and_value("nested", args, count, &field))
    return NULL;
  if (!PyType_Check(args[1]) ||
      !PyType_IsSubtype((PyTypeObject*)args[1], message_writer_type)) {
    PyErr_Format(PyExc_TypeError, "expected a class of writers, not %R",
                 args[1]);
    return NULL;
  }
  return message_writer_open((PyTypeObject*)args[1], self_of(self), field);
}

static bool is_root(const struct message_writer* w) {
  return w->at == &w->output->root;
}

static bool end_message(struct message_writer* w) {
  if (!is_current(w))
    return true; /* It is no error to end a message twice. */
  if (!message_writer_is_open(w))
    return !PyErr_Occurred();
  if (is_root(w))
    return output_complete(w->output);
  st_message_finalize(&w->at->message);
  return true;
}

static PyObject* finalize(PyObject* self, PyObject* Py_UNUSED(none)) {
  return none_if(end_message(self_of(self)));
}

static PyObject* writer_enter(PyObject* self, PyObject* Py_UNUSED(none)) {
  return Py_NewRef(self);
}

/* If the `with` block has raised an exception, that exception is raised rather
 * than our own, because it is the reason why the message is incomplete. */
static PyObject* writer_exit(PyObject* self, PyObject* const* args,
                             Py_ssize_t count) {
  bool ended = end_message(self_of(self));
  if (!ended && count > 0 && !Py_IsNone(args[0]) &&
      PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
    ended = true;
  }
  return none_if(ended);
}

static bool check_finish(const struct message_writer* w) {
  if (!is_root(w) || w->output->kind != TO_HEAP) {
    set_protocol_error(
        "only the outermost message has bytes of its own, and only one that "
        "isn't written elsewhere: call finalize()");
    return false;
  }
  if (!is_current(w)) {
    set_protocol_error("the message has ended: finish() it once");
    return false;
  }
  return true;
}

static PyObject* finish(PyObject* self, PyObject* Py_UNUSED(none)) {
  struct message_writer* w = self_of(self);
  return check_finish(w) && output_complete(w->output) ? output_bytes(w->output)
                                                       : NULL;
}

static PyObject* get_size(PyObject* self, void* Py_UNUSED(closure)) {
  struct message_writer* w = self_of(self);
  if (w->at->serial != w->serial)
    Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(w->at->message.size);
}

static PyObject* misuse_counter(PyObject* Py_UNUSED(module),
                                PyObject* Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(misuse_count);
}

static PyObject* raise_on_misuse(PyObject* Py_UNUSED(module), PyObject* value) {
  return st_bind_set_flag(&misuse_raises, value);
}

static bool read_dev_mode(void) {
  int dev_mode = st_bind_dev_mode();
  misuse_raises = dev_mode > 0;
  return dev_mode >= 0;
}

static PyMethodDef kFunctions[] = {
    {"writer_misuse_count", misuse_counter, METH_NOARGS,
     "Number of writes to ended messages since the process started."},
    {"raise_on_writer_misuse", raise_on_misuse, METH_O,
     "Set whether such writes raise; return the old value. -X dev sets it to "
     "True."},
    {0},
};

#define FASTCALL(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef kMethods[] = {
    {"append_varint", FASTCALL(append_varint), METH_FASTCALL,
     "Append an integer as a varint: its low 64 bits."},
    {"append_fixed32", FASTCALL(append_fixed32), METH_FASTCALL,
     "Append the low 32 bits of an integer."},
    {"append_fixed64", FASTCALL(append_fixed64), METH_FASTCALL,
     "Append the low 64 bits of an integer."},
    {"append_bytes", FASTCALL(append_bytes), METH_FASTCALL,
     "Append bytes, a string, or a message that is encoded already."},
    {"append_raw", append_raw, METH_O,
     "Append fields that are encoded already, tags included."},
    {"nested", FASTCALL(nested), METH_FASTCALL,
     "Open a nested message with a field number and a class of writers."},
    {"finalize", finalize, METH_NOARGS,
     "End this message and its nested messages. A second call has no effect."},
    {"finish", finish, METH_NOARGS, "End a root message and return it."},
    {"__enter__", writer_enter, METH_NOARGS, "The writer."},
    {"__exit__", FASTCALL(writer_exit), METH_FASTCALL,
     "Like finalize(); an exception of the block takes precedence."},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"size", get_size, NULL,
     "Bytes so far, without open nested messages; None if the message has "
     "ended and another one was opened.",
     NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "An append-only message; its methods take field numbers."},
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("MessageWriter", struct message_writer,
                                        Py_TPFLAGS_BASETYPE, kSlots);

ST_BIND_PART(message_writer) {
  message_writer_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  if (!message_writer_type || st_bind_with_methods(message_writer_type) < 0 ||
      !read_dev_mode())
    return -1;
  message_writer_finish_type(message_writer_type);
  if (PyModule_AddType(module, message_writer_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
