/* The extension module stretto._importer: the parts of stretto._native that read
 * traces, for systems that can't record.
 *
 * It uses only the stable ABI of CPython 3.11, so one file suits all later
 * versions.  Its parts are those of native/bind.
 *
 * The types are shared by all interpreters of a process, so the module is
 * initialised in one phase: then CPython refuses to import it where an
 * interpreter has a GIL of its own.
 */
#include "bind/common/python.h"

int st_bind_add_trace_scan(PyObject* module);
int st_bind_add_importer(PyObject* module);

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._importer",
    .m_doc = "Traces as tables.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__importer(void) {
  PyObject* module = PyModule_Create(&kModule);
  if (module &&
      (st_bind_add_trace_scan(module) < 0 || st_bind_add_importer(module) < 0))
    Py_CLEAR(module);
  return module;
}
