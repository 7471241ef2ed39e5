/* request_key(): returns the flow key found in the headers or metadata of a
 * request.
 */
#include "core/request_key.h"
#include "bind/common/text.h"

static bool is_name(const char* text, size_t size, const char* name) {
  return size == strlen(name) && memcmp(text, name, size) == 0;
}

/* Sets *key if a (name, value) pair contains a flow key.  Returns true if no
 * later pair can change *key: the header x-stretto-flow takes precedence over
 * traceparent. */
static bool take_pair(PyObject* pair, uint64_t* key) {
  const char *name, *value;
  size_t name_size, value_size;
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 ||
      !st_bind_text(PyTuple_GET_ITEM(pair, 0), &name, &name_size) ||
      !st_bind_text(PyTuple_GET_ITEM(pair, 1), &value, &value_size))
    return false;
  uint64_t found = 0;
  if (is_name(name, name_size, "x-stretto-flow"))
    found = st_flow_header_key(value, value_size);
  else if (!*key && is_name(name, name_size, "traceparent"))
    *key = st_traceparent_key(value, value_size);
  if (found)
    *key = found;
  return found != 0;
}

static PyObject* request_key(PyObject* Py_UNUSED(module), PyObject* pairs) {
  uint64_t key = 0;
  if (!PyTuple_Check(pairs) && !PyList_Check(pairs))
    return PyLong_FromLong(0);
  bool done = false;
  Py_BEGIN_CRITICAL_SECTION(pairs);
  for (Py_ssize_t i = 0; !done && i < PySequence_Fast_GET_SIZE(pairs); i++)
    done = take_pair(PySequence_Fast_GET_ITEM(pairs, i), &key);
  Py_END_CRITICAL_SECTION();
  return PyLong_FromUnsignedLongLong(key);
}

static PyMethodDef kFunctions[] = {
    {"request_key", request_key, METH_O, NULL},
    {0},
};

ST_BIND_PART(request_key) {
  return PyModule_AddFunctions(module, kFunctions);
}
