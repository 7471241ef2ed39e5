#include "probes/elf_file.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { BYTE_ORDER_OF_MACHINE = ELFDATA2LSB };
#else
enum { BYTE_ORDER_OF_MACHINE = ELFDATA2MSB };
#endif

enum { MAX_NOTES = 1 << 16 };

static bool read_at(int fd, uint64_t offset, void* out, size_t size) {
  if (offset > INT64_MAX - size)
    return false;
  for (uint8_t* at = out; size;) {
    ssize_t n = pread(fd, at, size, (off_t)offset);
    if (n <= 0)
      return false;
    at += n;
    offset += (uint64_t)n;
    size -= (size_t)n;
  }
  return true;
}

/* Reads a part of the file into new memory, with a NUL behind it.  Returns NULL
 * on failure. */
static void* read_part(int fd, uint64_t offset, uint64_t size) {
  off_t file = lseek(fd, 0, SEEK_END);
  if (file < 0 || size > ST_ELF_MAX_SECTION || offset > (uint64_t)file ||
      size > (uint64_t)file - offset)
    return NULL;
  char* part = malloc((size_t)size + 1);
  if (part && !read_at(fd, offset, part, (size_t)size)) {
    free(part);
    return NULL;
  }
  if (part)
    part[size] = 0;
  return part;
}

static bool is_readable(const Elf64_Ehdr* h) {
  return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
         h->e_ident[EI_CLASS] == ELFCLASS64 &&
         h->e_ident[EI_DATA] == BYTE_ORDER_OF_MACHINE;
}

/* --- Segments ------------------------------------------------------------- */

static size_t padded(uint32_t size) {
  return ((size_t)size + 3) & ~(size_t)3;
}

/* Stores the build id, if it is in these notes. */
static void find_build_id(struct st_elf_file* elf, const uint8_t* notes,
                          size_t size) {
  Elf64_Nhdr n;
  while (size >= sizeof n) {
    memcpy(&n, notes, sizeof n);
    size_t name = padded(n.n_namesz), value = padded(n.n_descsz);
    notes += sizeof n;
    size -= sizeof n;
    if (name > size || value > size - name)
      return;
    if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
        memcmp(notes, "GNU", 4) == 0 && n.n_descsz <= ST_ELF_MAX_BUILD_ID) {
      memcpy(elf->build_id, notes + name, n.n_descsz);
      elf->build_id_size = n.n_descsz;
      return;
    }
    notes += name + value;
    size -= name + value;
  }
}

static void read_notes(struct st_elf_file* elf, int fd, const Elf64_Phdr* p) {
  uint8_t* notes =
      p->p_filesz <= MAX_NOTES ? read_part(fd, p->p_offset, p->p_filesz) : NULL;
  if (notes)
    find_build_id(elf, notes, (size_t)p->p_filesz);
  free(notes);
}

static void read_segments(struct st_elf_file* elf, int fd,
                          const Elf64_Ehdr* h) {
  for (unsigned i = 0; i < h->e_phnum && i < ST_ELF_MAX_SEGMENTS; i++) {
    Elf64_Phdr p;
    if (!read_at(fd, h->e_phoff + i * sizeof p, &p, sizeof p))
      return;
    if (p.p_type == PT_LOAD)
      elf->segments[elf->segment_count++] = (struct st_elf_segment){
          p.p_offset, p.p_filesz, p.p_vaddr, p.p_flags & PF_X};
    if (p.p_type == PT_NOTE && !elf->build_id_size)
      read_notes(elf, fd, &p);
    if (p.p_type == PT_GNU_EH_FRAME)
      elf->tables = p.p_vaddr;
  }
}

/* --- Symbols -------------------------------------------------------------- */

static bool is_function(const Elf64_Sym* s) {
  unsigned type = ELF64_ST_TYPE(s->st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) &&
         s->st_shndx != SHN_UNDEF && s->st_value;
}

static void add_symbols(struct st_symbol_table* t, const void* data,
                        size_t count) {
  Elf64_Sym s;
  for (size_t i = 0; i < count; i++) {
    memcpy(&s, (const uint8_t*)data + i * sizeof s, sizeof s);
    if (is_function(&s) && s.st_name && s.st_name < t->text_size &&
        !st_symbol_table_add(t, s.st_value, s.st_size, s.st_name))
      break;
  }
  st_symbol_table_sort(t);
}

static void read_symbols(struct st_elf_file* elf, int fd,
                         const Elf64_Shdr* sections, size_t count,
                         const Elf64_Shdr* table) {
  if (table->sh_link >= count)
    return;
  const Elf64_Shdr* names = &sections[table->sh_link];
  void* data = read_part(fd, table->sh_offset, table->sh_size);
  char* text = data ? read_part(fd, names->sh_offset, names->sh_size) : NULL;
  if (text) {
    elf->symbols.text = text;
    elf->symbols.text_size = (size_t)names->sh_size + 1;
    add_symbols(&elf->symbols, data,
                (size_t)table->sh_size / sizeof(Elf64_Sym));
  }
  free(data);
}

static const Elf64_Shdr* section_of(const Elf64_Shdr* sections, size_t count,
                                    uint32_t type) {
  for (size_t i = 0; i < count; i++)
    if (sections[i].sh_type == type)
      return &sections[i];
  return NULL;
}

static void read_sections(struct st_elf_file* elf, int fd,
                          const Elf64_Ehdr* h) {
  size_t count = h->e_shnum;
  if (!count || h->e_shentsize != sizeof(Elf64_Shdr))
    return;
  Elf64_Shdr* sections = read_part(fd, h->e_shoff, count * sizeof *sections);
  if (!sections)
    return;
  const Elf64_Shdr* table = section_of(sections, count, SHT_SYMTAB);
  table = table ? table : section_of(sections, count, SHT_DYNSYM);
  if (table)
    read_symbols(elf, fd, sections, count, table);
  free(sections);
}

/* --- The file ------------------------------------------------------------- */

bool st_elf_file_read(struct st_elf_file* elf, int fd) {
  Elf64_Ehdr h;
  memset(elf, 0, sizeof *elf);
  if (!read_at(fd, 0, &h, sizeof h) || !is_readable(&h))
    return false;
  if (h.e_phentsize == sizeof(Elf64_Phdr))
    read_segments(elf, fd, &h);
  read_sections(elf, fd, &h);
  return true;
}

/* --- Unwind tables -------------------------------------------------------- */

bool st_elf_file_read_tables(struct st_elf_file* elf, int fd) {
  for (uint32_t i = 0; i < elf->segment_count && elf->tables; i++) {
    const struct st_elf_segment* s = &elf->segments[i];
    uint64_t before = elf->tables - s->address;
    if (elf->table_bytes || elf->tables < s->address || before >= s->size ||
        s->offset > UINT64_MAX - before)
      continue;
    elf->table_size = s->size - before;
    elf->table_bytes = read_part(fd, s->offset + before, elf->table_size);
  }
  return elf->table_bytes != NULL;
}

static bool read_tables(void* self, uint64_t address, void* to, size_t size) {
  const struct st_elf_file* elf = self;
  uint64_t at = address - elf->tables;
  if (!elf->table_bytes || address < elf->tables || at > elf->table_size ||
      size > elf->table_size - at)
    return false;
  memcpy(to, elf->table_bytes + at, size);
  return true;
}

struct st_memory st_elf_file_tables(const struct st_elf_file* elf) {
  return (struct st_memory){.read = read_tables, .self = (void*)elf};
}

uint64_t st_elf_file_address(const struct st_elf_file* elf, uint64_t offset) {
  for (uint32_t i = 0; i < elf->segment_count; i++) {
    const struct st_elf_segment* s = &elf->segments[i];
    if (s->is_code && offset >= s->offset && offset - s->offset < s->size)
      return offset - s->offset + s->address;
  }
  return offset;
}

uint64_t st_elf_file_load_bias(const struct st_elf_file* elf) {
  for (uint32_t i = 0; i < elf->segment_count; i++)
    if (elf->segments[i].is_code)
      return elf->segments[i].address - elf->segments[i].offset;
  return 0;
}

void st_elf_file_free(struct st_elf_file* elf) {
  st_symbol_table_free(&elf->symbols);
  free(elf->table_bytes);
}
