/* Systrace: the kernel's events as text, as the file `trace` of tracefs,
 * trace-cmd and Android's atrace print them.
 *
 *   kworker/u16:1-77    (   77) [004] ....   316.196720: print: B|77|x
 *   task-tid            (tgid)  [cpu] flags  seconds     event  arguments
 *
 * The process and the flags may be missing.  Lines are queued by their times,
 * and parsed as the events of kernel events in packets are.  In a file of HTML,
 * the lines are those of the section with the header of a trace.
 *
 * Limits: lines of at most 64 KiB.  Process dumps in HTML, and the events of
 * binder, are not read.
 */
#pragma once

#include "memory.h"

struct st_importer;
struct st_event;

enum st_systrace_part {
  ST_SYSTRACE_START,
  ST_SYSTRACE_HTML,
  ST_SYSTRACE_SECTION,
  ST_SYSTRACE_LINES,
  ST_SYSTRACE_END,
};

struct st_systrace {
  bool is_used;
  enum st_systrace_part part;
  ST_ARRAY(char) line;
  uint64_t unread_lines; /* With events of other kinds. */
};

/* Returns whether a trace begins like such a text. */
bool st_systrace_begins(const void* data, size_t size);
/* These functions read a piece of the text, and parse a queued line. */
void st_read_systrace(struct st_importer* m, const char* data, size_t size);
void st_parse_systrace(struct st_importer* m, const struct st_event* e);
