#include "probes/import_slots.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { FOR_CALLS = R_X86_64_JUMP_SLOT, FOR_ADDRESSES = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { FOR_CALLS = R_AARCH64_JUMP_SLOT, FOR_ADDRESSES = R_AARCH64_GLOB_DAT };
#else
enum { FOR_CALLS = -1, FOR_ADDRESSES = -1 };
#endif

/* A loaded library, with what its dynamic section says. */
struct library {
  const struct dl_phdr_info* info;
  const ElfW(Sym) * symbols;
  const char* names;
  const ElfW(Rela) * calls, *others;
  size_t call_bytes, other_bytes;
};

struct search {
  struct st_import* import;
  uintptr_t address;
  const char* name;
  const void* function;
  const char* problem;
};

static uintptr_t begin_of(const struct dl_phdr_info* info,
                          const ElfW(Phdr) * p) {
  return info->dlpi_addr + p->p_vaddr;
}

static bool contains(const struct dl_phdr_info* info, uintptr_t address) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && address - begin_of(info, p) < p->p_memsz)
      return true;
  }
  return false;
}

/* Some C libraries store addresses in the dynamic section, others offsets. */
static const void* at(const struct dl_phdr_info* info, ElfW(Addr) value) {
  return (const void*)(value < info->dlpi_addr ? info->dlpi_addr + value
                                               : value);
}

static void read_dynamic(struct library* l, const ElfW(Dyn) * d) {
  bool with_addends = false;
  for (; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_SYMTAB)
      l->symbols = at(l->info, d->d_un.d_ptr);
    else if (d->d_tag == DT_STRTAB)
      l->names = at(l->info, d->d_un.d_ptr);
    else if (d->d_tag == DT_JMPREL)
      l->calls = at(l->info, d->d_un.d_ptr);
    else if (d->d_tag == DT_PLTRELSZ)
      l->call_bytes = d->d_un.d_val;
    else if (d->d_tag == DT_PLTREL)
      with_addends = d->d_un.d_val == DT_RELA;
    else if (d->d_tag == DT_RELA)
      l->others = at(l->info, d->d_un.d_ptr);
    else if (d->d_tag == DT_RELASZ)
      l->other_bytes = d->d_un.d_val;
  }
  if (!with_addends)
    l->call_bytes = 0;
}

static void add_slots(struct search* s, const struct library* l,
                      const ElfW(Rela) * relocations, size_t bytes) {
  struct st_import* m = s->import;
  for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
    const ElfW(Rela)* r = &relocations[i];
    int type = (int)ELF64_R_TYPE(r->r_info);
    const ElfW(Sym)* symbol = &l->symbols[ELF64_R_SYM(r->r_info)];
    if ((type != FOR_CALLS && type != FOR_ADDRESSES) ||
        strcmp(l->names + symbol->st_name, s->name) != 0 ||
        m->count == ST_IMPORT_SLOTS)
      continue;
    m->slots[m->count] = (void**)(l->info->dlpi_addr + r->r_offset);
    m->originals[m->count] = *m->slots[m->count];
    m->count++;
  }
}

/* A slot has the address of the function, or of a stub in its library. */
static bool is_as_linked(const struct search* s, const struct library* l) {
  for (unsigned i = 0; i < s->import->count; i++) {
    const void* original = s->import->originals[i];
    if (original != s->function && !contains(l->info, (uintptr_t)original))
      return false;
  }
  return true;
}

static const char* find_slots(struct search* s, struct library* l) {
  if (!l->symbols || !l->names)
    return "the library has no table of symbols";
  if (l->calls)
    add_slots(s, l, l->calls, l->call_bytes);
  if (l->others)
    add_slots(s, l, l->others, l->other_bytes);
  if (!s->import->count)
    return "the library doesn't import the function";
  return is_as_linked(s, l) ? NULL : "another tool observes the function";
}

static void set_read_only(struct st_import* m, const struct dl_phdr_info* info,
                          const ElfW(Phdr) * p) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  m->read_only_begin = begin_of(info, p) & ~(page - 1);
  m->read_only_end = (begin_of(info, p) + p->p_memsz) & ~(page - 1);
}

static int visit(struct dl_phdr_info* info, size_t size, void* self) {
  (void)size;
  struct search* s = self;
  if (!contains(info, s->address))
    return 0;
  struct library l = {.info = info};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* p = &info->dlpi_phdr[i];
    if (p->p_type == PT_DYNAMIC)
      read_dynamic(&l, (const ElfW(Dyn)*)begin_of(info, p));
    else if (p->p_type == PT_GNU_RELRO)
      set_read_only(s->import, info, p);
  }
  s->problem = find_slots(s, &l);
  return 1;
}

const char* st_import_find(struct st_import* import, const void* address,
                           const char* name, const void* function) {
  *import = (struct st_import){0};
  struct search s = {import, (uintptr_t)address, name, function,
                     "the library was not found"};
  if (FOR_CALLS < 0)
    return "not on this processor";
  dl_iterate_phdr(visit, &s);
  return s.problem;
}

/* --- Writing ------------------------------------------------------------- */

static bool protect(void** slot, int protection) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  void* begin = (void*)((uintptr_t)slot & ~(page - 1));
  return mprotect(begin, page, protection) == 0;
}

static bool store(const struct st_import* m, void** slot, void* value) {
  uintptr_t address = (uintptr_t)slot;
  bool read_only = address >= m->read_only_begin && address < m->read_only_end;
  if (read_only && !protect(slot, PROT_READ | PROT_WRITE))
    return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (read_only)
    protect(slot, PROT_READ);
  return true;
}

bool st_import_replace(struct st_import* m, void* function) {
  for (unsigned i = 0; i < m->count; i++) {
    if (store(m, m->slots[i], function))
      continue;
    st_import_restore(m, function);
    return false;
  }
  return true;
}

void st_import_restore(struct st_import* m, void* function) {
  for (unsigned i = 0; i < m->count; i++)
    if (*m->slots[i] == function)
      store(m, m->slots[i], m->originals[i]);
}
