/* ELF file: what a profiler reads of a program or library.
 *
 *   header             where the tables of segments and sections are
 *   PT_LOAD segments   which part of the file has which addresses
 *   PT_NOTE segments   the build id: note "GNU" of type 3
 *   .symtab, else .dynsym, with its .strtab: names of functions by address
 *   .eh_frame_hdr      and what follows it in its segment: the unwind tables
 *                      (eh_frame.h), only if they are asked for
 *
 * The file may be damaged or hostile, and may change while it is read.  So it is
 * read, never mapped (a mapped file that shrinks ends the process), and each
 * offset, size and count is validated.  Only 64-bit files in this machine's byte
 * order are read.
 *
 * Limits: ST_ELF_MAX_SEGMENTS, sections of ST_ELF_MAX_SECTION bytes; beyond
 * them the file has no symbols, or no unwind tables.
 * Source: elf(5).
 */
#pragma once

#include "probes/stack_reader.h"
#include "probes/symbol_table.h"

enum {
  ST_ELF_MAX_SEGMENTS = 64,
  ST_ELF_MAX_SECTION = 1 << 28,
  ST_ELF_MAX_BUILD_ID = 64,
};

struct st_elf_segment {
  uint64_t offset, size, address;
  bool is_code;
};

struct st_elf_file {
  struct st_elf_segment segments[ST_ELF_MAX_SEGMENTS];
  uint32_t segment_count;
  uint8_t build_id[ST_ELF_MAX_BUILD_ID];
  uint32_t build_id_size;
  struct st_symbol_table symbols;
  /* The address of .eh_frame_hdr; 0: there is none.  The bytes from there on. */
  uint64_t tables;
  uint8_t* table_bytes;
  uint64_t table_size;
};

/* Reads a file.  Returns false if it is no such ELF file. */
bool st_elf_file_read(struct st_elf_file* elf, int fd);
/* Reads the unwind tables, too.  Returns false if there are none. */
bool st_elf_file_read_tables(struct st_elf_file* elf, int fd);
/* Returns the unwind tables, at the file's own addresses.  `elf` must exist as long
 * as this. */
struct st_memory st_elf_file_tables(const struct st_elf_file* elf);
/* Returns the address of the byte at an offset of the file.  Offsets outside the
 * segments are returned unchanged. */
uint64_t st_elf_file_address(const struct st_elf_file* elf, uint64_t offset);
/* Returns the difference between addresses and offsets of the code, the first
 * executable segment. */
uint64_t st_elf_file_load_bias(const struct st_elf_file* elf);
void st_elf_file_free(struct st_elf_file* elf);
