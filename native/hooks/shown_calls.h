/* Shown calls: the open calls of one thread that are, or may become, slices.
 *
 * A call is shown, as a slice, if it lasts at least as long as the threshold.
 * A shorter one is only counted, in its caller.  So the BEGIN of a call waits
 * until the call has lasted that long, and is then written with the time at
 * which the call began.  An enclosing call is never shorter than an inner one.
 *
 *   frames   [ main | load | parse ]     reported by events: exact times
 *                      `--- by look      found by looks (look.h), and inserted
 *                                        here by sightings.h
 *
 * A frame that a look found may end without an event.  It is closed when it
 * cannot be open any more: its caller returns, a call begins that is not inside
 * it, a look does not find it, or its function is called again at the same
 * address.  Its end is the last time at which it was certainly open (`last`),
 * so it overlaps neither the end of its caller nor the next call.  A frame that
 * only one look found is not shown, as it may have been many short calls.
 *
 * Threads: the thread that holds the GIL may change the frames of any thread.
 * That is correct because a thread handles each event completely before it
 * releases the GIL, and sightings are in the order of their times.  A thread
 * writes its own slices; another thread writes them to its track.
 */
#pragma once

#include "core/thread_list.h"
#include "hooks/code_records.h"
#include "hooks/tracer.h"

enum {
  ST_SHORT_CALLS = 100,  /* Short calls in a row that switch a function off. */
  ST_SHOWN_CALLS = 4096, /* The maximal depth of shown calls. */
};

struct st_shown_frame {
  uint64_t address; /* The address of the interpreter's frame. */
  struct st_code_record* record;
  uint64_t begin;
  uint64_t last;        /* The last time at which it was certainly open. */
  uint64_t child_end;   /* The end of the last call that it made. */
  uint64_t short_calls; /* The number of calls in it that are not shown. */
  uint64_t short_ns;
  uint64_t unsure_ns; /* How much earlier the call may have begun. */
  uint32_t mask, since, except;
  uint32_t looks; /* Number of looks that found it. */
  bool by_look;   /* A look found it, so it may end without an event. */
  bool found;     /* A look found it first: it began without an event. */
  bool confirmed; /* The frame is certainly one call, not several. */
  bool written;   /* The BEGIN was written. */
};

/* The result of the last look at a thread.  It is never freed.
 *
 * The look thread writes `thread_id` and `until`, the thread itself `events`.
 * Stores of the first two are sequentially consistent: who sees an `until` for
 * its id sees no older one, since it is cleared before the id is set. `events`
 * is relaxed: it orders nothing, and a look that misses the last event treats
 * the stack as unchanged for one more period. */
struct st_looked_at {
  _Atomic uint64_t thread_id;
  /* The time up to which the thread's stack was unchanged. */
  _Atomic uint64_t until;
  /* Number of the thread's events; each may outdate the last sighting. */
  _Atomic uint64_t events;
};

struct st_shown_calls {
  struct st_thread_record thread;
  struct st_shown_frame* frames;
  uint32_t depth, capacity;
  uint32_t begun; /* Number of first frames whose BEGINs are written. */
  uint32_t by_look;
  uint32_t generation;
  uint64_t last_event; /* The time of the thread's last event. */
  uint64_t last_look;  /* The time of the last merged sighting. */
  uint64_t native_id;
  struct st_looked_at* looked_at; /* NULL before the first sighting. */
  PyObject* track;                /* Made when another thread writes to it. */
  PyObject* raised; /* The argument of st_shown_leave(), borrowed. */
  /* The thread is handling an event, perhaps waiting without the GIL. */
  bool busy;
};

struct st_shown_counts {
  /* The number of slices, of slices found by looks, and of short calls. */
  uint64_t shown, found, counted;
};

extern _Thread_local struct st_shown_calls* st_thread_shown;
extern struct st_shown_counts st_shown_counts;

/* Returns the calling thread's shown calls, made on first use.  NULL when out
 * of memory. */
struct st_shown_calls* st_shown_get(void);
/* Returns a thread's shown calls, made on first use.  NULL when out of
 * memory. */
struct st_shown_calls* st_shown_of(uint64_t thread_id, uint64_t native_id);
/* Ends the shown calls of a thread that has ended, and frees them. */
void st_shown_gone(struct st_shown_calls* s);
void st_shown_watch_forks(void);

/* Adds the call that begins at the frame. */
void st_shown_enter(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now);
/* Closes the call of the frame, which ends; `raised` is the type of the
 * exception that left it, or NULL.  Returns false if it is not among
 * the shown calls. */
bool st_shown_leave(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now,
                    PyObject* raised);

/* Inserts a frame that a look found at `index`.  Returns NULL if there is no
 * room. */
struct st_shown_frame* st_shown_insert(struct st_shown_calls* s, uint32_t index,
                                       uint64_t address,
                                       struct st_code_record* record);
/* Updates `last` of the frames that looks found, from the last look at the
 * thread. No time becomes later than `now`. */
void st_shown_refresh(struct st_shown_calls* s, uint64_t now);
/* Sets `last` of the frames that the last look found to `time`. */
void st_shown_extend(struct st_shown_calls* s, uint64_t time);
/* Closes all frames deeper than `depth`, each at its time `last`. */
void st_shown_cut(struct st_shown_calls* s, uint32_t depth);
/* Writes the BEGINs of all calls that have lasted as long as the threshold. */
void st_shown_write_due(struct st_shown_calls* s, uint64_t now);
/* Ends all frames of all threads, at the end of the recording. */
void st_shown_end_all(uint64_t now);

/* Switches a function off: the interpreter reports no further calls of its
 * code. */
void st_shown_switch_off(struct st_code_record* record);
