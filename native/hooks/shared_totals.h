/* The totals of auto detail, in memory that outlives this process: the recorder
 * gets the descriptor of the memory, and reads the totals at the end of the
 * recording.  So the totals of a process that is killed, or still runs, are
 * known, too.  The reader is stretto/recorder/host/totals.py.
 *
 * Only functions that a stack sample has found have totals.
 *
 * Fork: the child has no totals until it calls st_totals_share().
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { ST_TOTALS_FUNCTIONS = 1 << 13, ST_TOTALS_TEXT = 1 << 20 };

/* The numbers of the process.  ST_TOTALS_COUNT is the number of functions; it
 * is stored with release order after the function's totals are complete. */
enum st_totals_number {
  ST_TOTALS_PID,
  ST_TOTALS_COUNT,
  ST_TOTALS_RUNNING,
  ST_TOTALS_WAITING,
  ST_TOTALS_PERIOD,
  ST_TOTALS_LONGEST_GAP,
  ST_TOTALS_COUNTED,
  ST_TOTALS_THRESHOLD,
  /* The part of ST_TOTALS_WAITING in which threads were ready to run, and whether
   * it is known. */
  ST_TOTALS_READY,
  ST_TOTALS_KNOWS_READY,
  ST_TOTALS_SAMPLED, /* 1: only stack samples find calls. */
  ST_TOTALS_COLLECTIONS,
  ST_TOTALS_COLLECTING,
  /* The running time that belongs to no function: the stack was too deep. */
  ST_TOTALS_TOO_DEEP,
  ST_TOTALS_NUMBERS,
};

struct st_function_totals {
  _Atomic uint64_t calls;
  _Atomic uint64_t uncounted; /* 1: some calls were not counted. */
  /* Estimates, written by the sampling thread: the CPU time in which the
   * function was the innermost call, that in which it was on some stack, and
   * the waiting time in which it was the innermost call. */
  _Atomic uint64_t own_ns, time_ns, waiting_ns;
  uint64_t line;
  uint64_t text; /* The offset of its name and its file; each ends with a 0. */
};

/* Makes memory that can be shared.  Returns its descriptor, which the caller
 * owns, or -1 if there is no such memory, or some exists already. */
int st_totals_share(void);
/* Clears the totals.  If there is no memory, makes some that is not shared. */
void st_totals_start(void);

/* Stores a number of the process. */
void st_totals_set(enum st_totals_number number, uint64_t value);
/* Adds a function.  Returns its number, or 0 if there is no room or no memory.
 * Only the sampling thread calls this. */
uint32_t st_totals_add(const char* name, const char* file, uint64_t line);
/* Returns the totals of the function with this number, or NULL. */
struct st_function_totals* st_totals_at(uint32_t number);
