/* Tests of the reader of ELF files: of this program, and of damaged copies. */
#include "probes/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "probes/eh_frame.h"

static struct st_elf_file elf;

__attribute__((noinline)) int function_of_the_test(int x) {
  __asm__ volatile("");
  return x + 1;
}

static uint8_t* read_self(size_t* size) {
  static uint8_t data[1 << 24];
  int fd = open("/proc/self/exe", O_RDONLY);
  ssize_t n = read(fd, data, sizeof data);
  close(fd);
  CHECK(n > 0 && (size_t)n < sizeof data);
  *size = (size_t)n;
  return data;
}

static bool read_bytes(const void* data, size_t size) {
  int fd = memfd_create("elf", MFD_CLOEXEC);
  CHECK(write(fd, data, size) == (ssize_t)size);
  bool is_elf = st_elf_file_read(&elf, fd);
  close(fd);
  return is_elf;
}

static uint64_t symbol(const char* name) {
  for (size_t i = 0; i < elf.symbols.count; i++)
    if (!strcmp(elf.symbols.text + elf.symbols.symbols[i].name, name))
      return elf.symbols.symbols[i].address;
  return 0;
}

static void functions_of_this_program_have_names(void) {
  size_t size;
  const uint8_t* self = read_self(&size);
  CHECK_EQ(function_of_the_test(1), 2);
  CHECK(read_bytes(self, size));
  uint64_t address = symbol("function_of_the_test");
  CHECK(address);
  const char* name = st_symbol_table_find(&elf.symbols, address + 1);
  CHECK(name && !strcmp(name, "function_of_the_test"));
  uint64_t offset = address - st_elf_file_load_bias(&elf);
  CHECK_EQ(st_elf_file_address(&elf, offset), address);
  st_elf_file_free(&elf);
}

static void unwind_tables_of_this_program_have_its_functions(void) {
  int fd = open("/proc/self/exe", O_RDONLY);
  struct st_unwind_rules rules;
  CHECK(st_elf_file_read(&elf, fd));
  struct st_memory tables = st_elf_file_tables(&elf);
  uint64_t address = symbol("function_of_the_test");
  CHECK(!st_eh_frame_find(&tables, elf.tables, address, &rules));
#ifndef __GLIBC__
  if (!elf.tables) { /* As in static programs of musl-gcc. */
    CHECK(!st_elf_file_read_tables(&elf, fd));
    close(fd);
    st_elf_file_free(&elf);
    return;
  }
#endif
  CHECK(st_elf_file_read_tables(&elf, fd));
  CHECK(st_eh_frame_find(&tables, elf.tables, address + 1, &rules));
  CHECK_EQ(rules.function, address);
  uint8_t byte;
  uint64_t end = elf.tables + elf.table_size;
  CHECK(tables.read(tables.self, end - 1, &byte, 1));
  CHECK(!tables.read(tables.self, end, &byte, 1));
  CHECK(!tables.read(tables.self, elf.tables - 1, &byte, 1));
  close(fd);
  st_elf_file_free(&elf);
}

static void build_id_is_the_value_of_its_note(void) {
  static struct {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint8_t notes[40];
  } file;
  size_t size;
  memcpy(&file.header, read_self(&size), sizeof file.header);
  file.header.e_phoff = sizeof file.header;
  file.header.e_phnum = 1;
  file.header.e_shnum = 0;
  file.segment.p_type = PT_NOTE;
  file.segment.p_offset = sizeof file.header + sizeof file.segment;
  file.segment.p_filesz = 40;
  const uint8_t notes[40] = {4,   0,   0,   0,   0,   0, 0, 0, 1, 0, 0, 0, 'G',
                             'N', 'U', 0,   4,   0,   0, 0, 5, 0, 0, 0, 3, 0,
                             0,   0,   'G', 'N', 'U', 0, 1, 2, 3, 4, 5};
  memcpy(file.notes, notes, sizeof notes);
  CHECK(read_bytes(&file, sizeof file));
  CHECK_EQ(elf.build_id_size, 5);
  CHECK(!memcmp(elf.build_id, "\1\2\3\4\5", 5));
  st_elf_file_free(&elf);
}

static void other_files_are_refused(void) {
  CHECK(!read_bytes("#!/bin/sh\n", 10));
  size_t size;
  uint8_t* self = read_self(&size);
  CHECK(!read_bytes(self, 20));
  self[EI_CLASS] = ELFCLASS32;
  CHECK(!read_bytes(self, size));
}

static void cut_files_have_no_symbols(void) {
  size_t size;
  const uint8_t* self = read_self(&size);
  CHECK(read_bytes(self, size / 2));
  CHECK_EQ(elf.symbols.count, 0);
  st_elf_file_free(&elf);
}

int main(void) {
  RUN(functions_of_this_program_have_names);
  RUN(unwind_tables_of_this_program_have_its_functions);
  RUN(build_id_is_the_value_of_its_note);
  RUN(other_files_are_refused);
  RUN(cut_files_have_no_symbols);
  return 0;
}
