/* The functions of stretto.protozero.wire that encode a field: a hundred of
 * them take part in each recording. */
#include "bind/common/python.h"

#include <string.h>

#include "core/wire.h"

static PyObject* to_bytes(const uint8_t* begin, const uint8_t* end) {
  return PyBytes_FromStringAndSize((const char*)begin, end - begin);
}

/* Numbers of fields have 29 bits.  The tag of a larger number is computed as by
 * Python, up to 64 bits. */
static uint8_t* put_tag(uint8_t* p, uint64_t field, uint32_t wire_type) {
  return st_put_varint(p, field << 3 | wire_type);
}

static PyObject* varint(PyObject* Py_UNUSED(module), PyObject* number) {
  uint64_t value = PyLong_AsUnsignedLongLong(number);
  if (value == UINT64_MAX && PyErr_Occurred())
    return NULL;
  uint8_t out[ST_MAX_VARINT];
  return to_bytes(out, st_put_varint(out, value));
}

static PyObject* tag(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long field;
  unsigned int wire_type;
  if (!PyArg_ParseTuple(args, "KI:tag", &field, &wire_type))
    return NULL;
  uint8_t out[ST_MAX_VARINT];
  return to_bytes(out, put_tag(out, field, wire_type));
}

static PyObject* varint_field(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long field, value;
  if (!PyArg_ParseTuple(args, "KK:varint_field", &field, &value))
    return NULL;
  uint8_t out[2 * ST_MAX_VARINT];
  uint8_t* p = put_tag(out, field, ST_WIRE_VARINT);
  return to_bytes(out, st_put_varint(p, value));
}

static PyObject* bytes_field(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long field;
  Py_buffer data;
  if (!PyArg_ParseTuple(args, "Ky*:bytes_field", &field, &data))
    return NULL;
  uint8_t head[2 * ST_MAX_VARINT];
  uint8_t* p = put_tag(head, field, ST_WIRE_DELIMITED);
  Py_ssize_t size = st_put_varint(p, (uint64_t)data.len) - head;
  PyObject* made = PyBytes_FromStringAndSize(NULL, size + data.len);
  if (made) {
    char* out = PyBytes_AS_STRING(made);
    memcpy(out, head, (size_t)size);
    memcpy(out + size, data.buf, (size_t)data.len);
  }
  PyBuffer_Release(&data);
  return made;
}

static PyMethodDef kFunctions[] = {
    {"varint", varint, METH_O, NULL},
    {"tag", tag, METH_VARARGS, NULL},
    {"varint_field", varint_field, METH_VARARGS, NULL},
    {"bytes_field", bytes_field, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(wire_fields) {
  return PyModule_AddFunctions(module, kFunctions);
}
