/* Call sites: the instructions that have called C functions which may block.
 *
 * A site is found by its code object and the offset of its instruction.  The
 * code record of the code object keeps the code alive.  There are at most
 * ST_CALL_SITES sites; further ones are not measured.
 *
 * The name of a site is that of the C function which it called, such as
 * `_thread.lock.acquire`.  If a slice needs the name before an event has told
 * the function, the name is what the code calls it, `self._lock.acquire`, and
 * stays so: all slices of a site have one name.  A loop over a variable calls
 * no function by name: there the type of the variable's value tells it,
 * `_csv.reader.__next__`.
 */
#pragma once

#include "hooks/python_layout.h"
#include "hooks/tracer.h"

enum { ST_CALL_SITES = 4096 };

struct st_call_site {
  PyObject* code; /* A borrowed reference; NULL if the entry is unused. */
  int offset;     /* The offset of the instruction, in bytes. */
  /* The number of short calls since the last long one. */
  uint32_t short_row;
  PyObject* name; /* NULL if the site has no name yet. */
  /* Whether the name is what the code calls the function. */
  bool named_by_code;
};

/* Returns the site; NULL if there are too many. */
struct st_call_site* st_call_site_get(PyObject* code, int offset);
/* Returns the name of a site as a borrowed reference; NULL when out of memory.
 * `frame` is the call that waits there, whose variables are read; its address is
 * 0 if it may have ended.  The caller holds the GIL. */
PyObject* st_call_site_name(struct st_call_site* site,
                            struct st_stack_frame frame);
/* Names a site by the variable that a loop iterates over there.  No effect if
 * the site has a name, or if the loop iterates over something else. */
void st_call_site_name_loop(struct st_call_site* site,
                            struct st_stack_frame frame);
/* Returns whether the code contains a name that functions which block often
 * have: `sleep`, `acquire`, `recv`, and doesn't install profile functions. */
bool st_code_may_block(PyObject* code);
/* Names a site by the C function that it is calling, unless its slices have
 * the name that the code tells.  Returns the name as a borrowed reference; NULL
 * if both are unknown. */
PyObject* st_call_site_rename(struct st_call_site* site, PyObject* function);
void st_call_sites_clear(void);
