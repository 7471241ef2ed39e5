/* The clocks of the core as Python functions: boottime_ns() and read_tsc().
 */
#include "bind/common/python.h"

#include "core/clock.h"

static PyObject* boottime_ns(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(st_boottime_ns());
}

static PyObject* read_tsc(PyObject* Py_UNUSED(module),
                          PyObject* Py_UNUSED(unused)) {
#ifdef __x86_64__
  return PyLong_FromUnsignedLongLong(__builtin_ia32_rdtsc());
#else
  Py_RETURN_NONE;
#endif
}

static PyMethodDef kFunctions[] = {
    {"read_tsc", read_tsc, METH_NOARGS,
     "Return the processor's time stamp counter, or None if it is not usable."},
    {"boottime_ns", boottime_ns, METH_NOARGS,
     "Return CLOCK_BOOTTIME in nanoseconds."},
    {0},
};

ST_BIND_PART(clock) {
  return PyModule_AddFunctions(module, kFunctions);
}
