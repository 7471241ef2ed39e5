/* Symbols: names of the functions of files and of the kernel.
 *
 *   elf = ElfFile(path, unwind_tables=False)    ValueError: no 64-bit ELF file
 *   elf.build_id                   bytes, empty if it has none
 *   elf.load_bias                  addresses of the code minus its offsets
 *   elf.address(offset)            of the byte at an offset of the file
 *   elf.symbol(address)            bytes, or None
 *   elf.addresses(name)            of the functions with this name, and of their
 *                                  parts (name.cold): a list
 *   kernel = KernelSymbols(path)   /proc/kallsyms
 *   kernel.symbol(address)
 *   kernel.memory()                its size in bytes
 *   len(kernel)                    0 if the kernel hides the addresses
 *
 * The GIL is released while a file is read.
 */
#include <fcntl.h>
#include <unistd.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/symbols.h"
#include "probes/kernel_symbols.h"

enum { MAX_ADDRESSES = 64 };

struct elf_object {
  PyObject_HEAD
  struct st_elf_file elf;
};

struct kernel_object {
  PyObject_HEAD
  struct st_symbol_table table;
};

/* Reads a non-negative address.  Returns false with an exception set. */
static bool address_of(PyObject* value, uint64_t* address) {
  *address = PyLong_AsUnsignedLongLong(value);
  return !PyErr_Occurred();
}

static PyObject* name_at(const struct st_symbol_table* t, PyObject* value) {
  uint64_t address;
  if (!address_of(value, &address))
    return NULL;
  const char* name = st_symbol_table_find(t, address);
  if (!name)
    Py_RETURN_NONE;
  return PyBytes_FromString(name);
}

/* Returns the encoded path, which is the only argument. */
static PyObject* path_of(const struct st_bind_signature* signature,
                         PyObject* args, PyObject* kwargs) {
  PyObject *in[1], *path;
  if (!st_bind_new_arguments(signature, args, kwargs, in) ||
      !PyUnicode_FSConverter(in[0], &path))
    return NULL;
  return path;
}

/* --- ElfFile -------------------------------------------------------------- */

static bool read_elf(struct st_elf_file* elf, const char* path, bool has_tables,
                     bool* is_elf) {
  /* A path of another process may be a pipe: opening it must not wait. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return false;
  *is_elf = st_elf_file_read(elf, fd);
  if (*is_elf && has_tables)
    st_elf_file_read_tables(elf, fd);
  close(fd);
  return true;
}

static PyObject* elf_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 1, "ElfFile", "path", "unwind_tables");
  PyObject *in[2], *path;
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in) ||
      !PyUnicode_FSConverter(in[0], &path))
    return NULL;
  int has_tables = in[1] ? PyObject_IsTrue(in[1]) : 0;
  struct elf_object* self =
      has_tables >= 0 ? (struct elf_object*)type->tp_alloc(type, 0) : NULL;
  if (!self) {
    Py_XDECREF(path);
    return NULL;
  }
  bool is_open, is_elf = false;
  Py_BEGIN_ALLOW_THREADS
  is_open = read_elf(&self->elf, PyBytes_AS_STRING(path), has_tables, &is_elf);
  Py_END_ALLOW_THREADS
  if (!is_open)
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
  else if (!is_elf)
    PyErr_Format(PyExc_ValueError, "%R is no 64-bit ELF file", path);
  Py_DECREF(path);
  if (!is_open || !is_elf)
    Py_CLEAR(self);
  return (PyObject*)self;
}

static void elf_dealloc(PyObject* object) {
  st_elf_file_free(&((struct elf_object*)object)->elf);
  st_bind_free(object);
}

const struct st_elf_file* st_bind_elf_file(PyObject* object) {
  if (Py_TYPE(object)->tp_dealloc == elf_dealloc)
    return &((struct elf_object*)object)->elf;
  PyErr_Format(PyExc_TypeError, "expected an ElfFile, not %R", object);
  return NULL;
}

static PyObject* elf_address(PyObject* object, PyObject* value) {
  uint64_t offset;
  if (!address_of(value, &offset))
    return NULL;
  return PyLong_FromUnsignedLongLong(
      st_elf_file_address(&((struct elf_object*)object)->elf, offset));
}

static PyObject* elf_symbol(PyObject* object, PyObject* value) {
  return name_at(&((struct elf_object*)object)->elf.symbols, value);
}

static PyObject* elf_addresses(PyObject* object, PyObject* name) {
  uint64_t found[MAX_ADDRESSES];
  if (!PyBytes_Check(name))
    return PyErr_Format(PyExc_TypeError, "name must be bytes");
  int count =
      st_symbol_table_addresses(&((struct elf_object*)object)->elf.symbols,
                                PyBytes_AS_STRING(name), found, MAX_ADDRESSES);
  PyObject* list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    PyObject* address = PyLong_FromUnsignedLongLong(found[i]);
    if (address)
      PyList_SET_ITEM(list, i, address);
    else
      Py_CLEAR(list);
  }
  return list;
}

static PyObject* elf_build_id(PyObject* object, void* Py_UNUSED(closure)) {
  const struct st_elf_file* elf = &((struct elf_object*)object)->elf;
  return PyBytes_FromStringAndSize((const char*)elf->build_id,
                                   elf->build_id_size);
}

static PyObject* elf_load_bias(PyObject* object, void* Py_UNUSED(closure)) {
  return PyLong_FromUnsignedLongLong(
      st_elf_file_load_bias(&((struct elf_object*)object)->elf));
}

static PyMethodDef kElfMethods[] = {
    {"addresses", elf_addresses, METH_O, NULL},
    {"address", elf_address, METH_O, NULL},
    {"symbol", elf_symbol, METH_O, NULL},
    {0},
};

static PyGetSetDef kElfMembers[] = {
    {"build_id", elf_build_id, NULL, NULL, NULL},
    {"load_bias", elf_load_bias, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kElfSlots[] = {
    {Py_tp_new, elf_new},
    {Py_tp_dealloc, elf_dealloc},
    {Py_tp_methods, kElfMethods},
    {Py_tp_getset, kElfMembers},
    {0},
};

static PyType_Spec kElfSpec =
    ST_BIND_SPEC("ElfFile", struct elf_object, 0, kElfSlots);

/* --- KernelSymbols -------------------------------------------------------- */

static PyObject* kernel_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 1, "KernelSymbols", "path");
  PyObject* path = path_of(&kSignature, args, kwargs);
  struct kernel_object* self =
      path ? (struct kernel_object*)type->tp_alloc(type, 0) : NULL;
  if (!self) {
    Py_XDECREF(path);
    return NULL;
  }
  bool is_read;
  Py_BEGIN_ALLOW_THREADS
  is_read = st_kernel_symbols_read(&self->table, PyBytes_AS_STRING(path));
  Py_END_ALLOW_THREADS
  if (!is_read) {
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
    Py_CLEAR(self);
  }
  Py_DECREF(path);
  return (PyObject*)self;
}

static void kernel_dealloc(PyObject* object) {
  st_symbol_table_free(&((struct kernel_object*)object)->table);
  st_bind_free(object);
}

static PyObject* kernel_symbol(PyObject* object, PyObject* value) {
  return name_at(&((struct kernel_object*)object)->table, value);
}

static PyObject* kernel_memory(PyObject* object, PyObject* Py_UNUSED(none)) {
  return PyLong_FromSize_t(
      st_symbol_table_memory(&((struct kernel_object*)object)->table));
}

static Py_ssize_t kernel_length(PyObject* object) {
  return (Py_ssize_t)((struct kernel_object*)object)->table.count;
}

static PyMethodDef kKernelMethods[] = {
    {"symbol", kernel_symbol, METH_O, NULL},
    {"memory", kernel_memory, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kKernelSlots[] = {
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_methods, kKernelMethods},
    {Py_sq_length, kernel_length},
    {0},
};

static PyType_Spec kKernelSpec =
    ST_BIND_SPEC("KernelSymbols", struct kernel_object, 0, kKernelSlots);

ST_BIND_PART(symbols) {
  return st_bind_add_type(module, &kElfSpec) < 0
             ? -1
             : st_bind_add_type(module, &kKernelSpec);
}
