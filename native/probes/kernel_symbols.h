/* Kernel symbols: the functions in /proc/kallsyms.
 *
 *   ffffffff81000000 T _text
 *   ffffffffc0000000 t nf_conntrack_in	[nf_conntrack]
 *
 * Only code (types t, T, w, W) is taken; the module's name is left out.  Where
 * the kernel hides the addresses (kptr_restrict), all are 0, and the table
 * stays empty.
 * Source: proc(5).
 */
#pragma once

#include "probes/symbol_table.h"

/* Takes over the text, which was allocated with malloc.  Its last byte must be a
 * newline or a NUL. */
void st_kernel_symbols_parse(struct st_symbol_table* t, char* text,
                             size_t size);
/* Reads the file.  Returns false with errno set if it can't be read. */
bool st_kernel_symbols_read(struct st_symbol_table* t, const char* path);
