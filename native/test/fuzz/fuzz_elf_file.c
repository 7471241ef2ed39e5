/* Fuzzes the reader of ELF files and their unwind tables, and of the kernel's symbols.  An input that
 * begins with 'k' is a text of symbols.  Any other one changes a small valid
 * file: it is a list of positions and values, of two bytes and one. */
#define CHECK_ABORTS
#include "probes/elf_file.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../check.h"
#include "probes/eh_frame.h"
#include "probes/kernel_symbols.h"

static void check_symbols(const struct st_symbol_table* t) {
  for (size_t i = 0; i < t->count; i++) {
    const char* name = st_symbol_table_find(t, t->symbols[i].address);
    CHECK(!name || strlen(name) < t->text_size);
  }
  st_symbol_table_find(t, UINT64_MAX);
}

static void fuzz_kernel(const uint8_t* data, size_t size) {
  struct st_symbol_table t = {0};
  char* text = malloc(size + 1);
  memcpy(text, data, size);
  st_kernel_symbols_parse(&t, text, size);
  check_symbols(&t);
  st_symbol_table_free(&t);
}

struct small_elf {
  Elf64_Ehdr header;
  Elf64_Phdr segments[3];
  Elf64_Shdr sections[2];
  Elf64_Sym symbols[2];
  uint8_t note[20];
  char text[8];
};

static void make_file(struct small_elf* f) {
  memset(f, 0, sizeof *f);
  memcpy(f->header.e_ident, ELFMAG "\2\1", 6);
  f->header.e_phoff = offsetof(struct small_elf, segments);
  f->header.e_phentsize = sizeof f->segments[0];
  f->header.e_phnum = 3;
  f->header.e_shnum = 2;
  f->header.e_shoff = offsetof(struct small_elf, sections);
  f->header.e_shentsize = sizeof f->sections[0];
  f->segments[0] = (Elf64_Phdr){PT_LOAD, PF_X, 0, 0x100, 0, 512, 512, 0};
  f->segments[1] = (Elf64_Phdr){
      PT_NOTE, 0, offsetof(struct small_elf, note), 0, 0, 20, 20, 0};
  f->segments[2] = (Elf64_Phdr){PT_GNU_EH_FRAME, 0, 0x40, 0x140, 0, 64, 64, 0};
  f->sections[0].sh_type = SHT_SYMTAB;
  f->sections[0].sh_offset = offsetof(struct small_elf, symbols);
  f->sections[0].sh_size = sizeof f->symbols;
  f->sections[0].sh_link = 1;
  f->sections[1].sh_offset = offsetof(struct small_elf, text);
  f->sections[1].sh_size = sizeof f->text;
  f->symbols[0] = f->symbols[1] = (Elf64_Sym){1, STT_FUNC, 0, 1, 0x140, 8};
  memcpy(f->note, "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0abcd", 20);
  memcpy(f->text, "\0f\0g", 5);
}

static void change_file(struct small_elf* f, const uint8_t* data, size_t size) {
  for (size_t i = 0; i + 2 < size; i += 3) {
    size_t at = data[i] | (size_t)data[i + 1] << 8;
    ((uint8_t*)f)[at % sizeof *f] = data[i + 2];
  }
}

static void check_tables(struct st_elf_file* elf, int fd) {
  struct st_unwind_rules rules;
  if (!st_elf_file_read_tables(elf, fd))
    return;
  const struct st_memory tables = st_elf_file_tables(elf);
  st_eh_frame_find(&tables, elf->tables, 0x150, &rules);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct small_elf file;
  static struct st_elf_file elf;
  static int fd = -1;
  if (size && data[0] == 'k') {
    fuzz_kernel(data + 1, size - 1);
    return 0;
  }
  if (fd < 0)
    fd = memfd_create("elf", MFD_CLOEXEC);
  make_file(&file);
  change_file(&file, data, size);
  if (ftruncate(fd, 0) ||
      pwrite(fd, &file, sizeof file, 0) != (ssize_t)sizeof file)
    return 0;
  if (st_elf_file_read(&elf, fd)) {
    CHECK(elf.segment_count <= ST_ELF_MAX_SEGMENTS);
    CHECK(elf.build_id_size <= ST_ELF_MAX_BUILD_ID);
    check_symbols(&elf.symbols);
    st_elf_file_address(&elf, 1000);
    st_elf_file_load_bias(&elf);
    check_tables(&elf, fd);
    st_elf_file_free(&elf);
  }
  return 0;
}
