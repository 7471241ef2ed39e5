/* The Python type Tokenizer: splits a stream of bytes into messages.
 *
 * Each message is returned as bytes, as the tuple of a Selector, or as the
 * result of another callable.  Each of these may run Python code, if only
 * through the garbage collector; `busy` is set meanwhile and makes other calls
 * of the tokenizer fail.
 */
#include "core/tokenizer.h"

#include "bind/common/arguments.h"
#include "bind/common/errors.h"
#include "bind/common/types.h"
#include "bind/protozero/byte_range.h"
#include "bind/protozero/message_output.h"
#include "bind/protozero/selector.h"

#include <structmember.h>

#define DEFAULT_MAX_SIZE (64 << 20)

typedef struct {
  PyObject_HEAD
  struct st_tokenizer tokenizer;
  struct byte_range piece;
  /* The callable that makes the result for a message.  If NULL, messages are
   * returned as bytes. */
  PyObject* make;
  PyObject* marker;
  bool busy;
} TokenizerObject;

static TokenizerObject* cast(PyObject* self) {
  return (TokenizerObject*)self;
}

static bool init(TokenizerObject* t, PyObject* make, PyObject* marker,
                 int64_t field, int64_t max_size) {
  if (make && make != (PyObject*)&PyBytes_Type && !PyCallable_Check(make)) {
    PyErr_Format(PyExc_TypeError, "expected a callable, not %R", make);
    return false;
  }
  if (marker && !PyBytes_CheckExact(marker)) {
    PyErr_Format(PyExc_TypeError, "marker must be bytes, not %R",
                 (PyObject*)Py_TYPE(marker));
    return false;
  }
  t->make = make == (PyObject*)&PyBytes_Type ? NULL : Py_XNewRef(make);
  t->marker = Py_XNewRef(marker);
  st_tokenizer_init(&t->tokenizer, (uint32_t)field, (size_t)max_size,
                    marker ? PyBytes_AS_STRING(marker) : NULL,
                    marker ? (size_t)PyBytes_GET_SIZE(marker) : 0);
  return true;
}

static PyObject* tokenizer_new(PyTypeObject* type, PyObject* args,
                               PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 0, "Tokenizer", "make", "marker", "field",
                    "max_size");
  PyObject* in[4];
  int64_t field = 1, max_size = DEFAULT_MAX_SIZE;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_integer(in[2], "field", 1, (1 << 29) - 1, &field) ||
      !st_bind_integer(in[3], "max_size", 0, ST_MAX_MESSAGE_SIZE, &max_size))
    return NULL;
  TokenizerObject* t = (TokenizerObject*)type->tp_alloc(type, 0);
  if (t && !init(t, in[0], in[1], field, max_size))
    Py_CLEAR(t);
  return (PyObject*)t;
}

static int tokenizer_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->make);
  Py_VISIT(cast(self)->piece.owner);
  return 0;
}

static int tokenizer_clear(PyObject* self) {
  TokenizerObject* t = cast(self);
  st_tokenizer_append(&t->tokenizer, NULL, 0);
  byte_range_clear(&t->piece);
  Py_CLEAR(t->make);
  return 0;
}

static void tokenizer_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  tokenizer_clear(self);
  st_tokenizer_free(&cast(self)->tokenizer);
  Py_CLEAR(cast(self)->marker);
  st_bind_free(self);
}

static bool check_free(const TokenizerObject* t) {
  if (!t->busy)
    return true;
  set_protocol_error(
      "the tokenizer is in use, by another thread or by what "
      "it calls");
  return false;
}

static PyObject* append(PyObject* self, PyObject* data) {
  TokenizerObject* t = cast(self);
  struct byte_range piece;
  if (!check_free(t))
    return NULL;
  if (t->tokenizer.ended || t->tokenizer.cur != t->tokenizer.end) {
    set_protocol_error(t->tokenizer.ended
                           ? "the stream has ended: make a new Tokenizer"
                           : "there are messages left: iterate to the end "
                             "before the next piece");
    return NULL;
  }
  if (!byte_range_from(data, &piece))
    return NULL;
  byte_range_clear(&t->piece);
  t->piece = piece;
  st_tokenizer_append(&t->tokenizer, piece.data, piece.size);
  return Py_NewRef(self);
}

static PyObject* end(PyObject* self, PyObject* Py_UNUSED(none)) {
  if (!check_free(cast(self)))
    return NULL;
  st_tokenizer_end(&cast(self)->tokenizer);
  return Py_NewRef(self);
}

static PyObject* made_from(const TokenizerObject* t,
                           const struct st_token* token) {
  if (t->make && is_selector(t->make))
    return selector_row(t->make, token->data, token->size);
  PyObject* bytes = PyBytes_FromStringAndSize((const char*)token->data,
                                              (Py_ssize_t)token->size);
  if (!bytes || !t->make)
    return bytes;
  PyObject* made = PyObject_CallOneArg(t->make, bytes);
  Py_DECREF(bytes);
  return made;
}

/* Releases the piece.  From now on the owner of the piece may change it. */
static PyObject* exhausted(TokenizerObject* t) {
  if (t->tokenizer.cur == t->tokenizer.end) {
    st_tokenizer_append(&t->tokenizer, NULL, 0);
    byte_range_clear(&t->piece);
  }
  return t->tokenizer.out_of_memory ? PyErr_NoMemory() : NULL;
}

static PyObject* tokenizer_next(PyObject* self) {
  TokenizerObject* t = cast(self);
  struct st_token token;
  if (!check_free(t))
    return NULL;
  if (!st_tokenizer_next(&t->tokenizer, &token))
    return exhausted(t);
  t->busy = true;
  PyObject* made = made_from(t, &token);
  t->busy = false;
  return made;
}

static PyObject* count(PyObject* self, PyObject* Py_UNUSED(none)) {
  TokenizerObject* t = cast(self);
  struct st_token token;
  Py_ssize_t messages = 0;
  if (!check_free(t))
    return NULL;
  t->busy = true;
  Py_BEGIN_ALLOW_THREADS
  while (st_tokenizer_next(&t->tokenizer, &token))
    messages++;
  Py_END_ALLOW_THREADS
  t->busy = false;
  exhausted(t);
  return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(messages);
}

static PyObject* get_bytes_left(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromSize_t(st_tokenizer_left(&cast(self)->tokenizer));
}

static PyMethodDef kMethods[] = {
    {"append", append, METH_O, "Append the next piece; return the tokenizer."},
    {"end", end, METH_NOARGS,
     "End the stream; return the tokenizer, which iterates over messages "
     "recovered at the end."},
    {"count", count, METH_NOARGS,
     "Skip all complete messages; return their number."},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"bytes_left", get_bytes_left, NULL,
     "Bytes that belong to an incomplete message.", NULL},
    {0},
};

static PyMemberDef kMembers[] = {
    {"bytes_skipped", T_ULONGLONG, offsetof(TokenizerObject, tokenizer.skipped),
     READONLY, "Bytes skipped because of malformed input."},
    {"errors", T_ULONGLONG, offsetof(TokenizerObject, tokenizer.errors),
     READONLY, "Number of malformed places in the stream."},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "Splits a stream of messages that arrives in pieces."},
    {Py_tp_new, tokenizer_new},
    {Py_tp_dealloc, tokenizer_dealloc},
    {Py_tp_traverse, tokenizer_traverse},
    {Py_tp_clear, tokenizer_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, tokenizer_next},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_members, kMembers},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("Tokenizer", TokenizerObject,
                 Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(tokenizer) {
  return st_bind_add_type(module, &kSpec);
}
