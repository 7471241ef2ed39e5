/* The Python object ElfFile, for other bindings. */
#pragma once

#include "bind/common/python.h"
#include "probes/elf_file.h"

/* Returns the file of an ElfFile, which exists as long as the object.  NULL with
 * TypeError set: it is another object. */
const struct st_elf_file* st_bind_elf_file(PyObject* object);
