/* The calls of one thread that are open and may come to be shown.
 *
 * A call is shown if it lasted as long as the threshold; a shorter one is counted
 * in its caller.  So a BEGIN waits until its call has lasted that long, and is
 * written with its own time; what encloses a call is never shorter.
 *
 *   frames   [ main | load | parse ]     known by events: begin and end are exact
 *                      `--- by look      known by looks: sightings.h puts it here
 *
 * A frame by look may end without an event.  It is closed where it can't be open
 * any more: its caller returns, a call begins that isn't below it, a look
 * doesn't find it, its function is called anew at the same address.  It ends
 * with what was seen of it last (`last`), so it never reaches over the end of
 * what is around it or the begin of what follows.  One that was seen only once
 * isn't shown, as it may have been many short calls.
 *
 * Whoever holds the GIL may change the frames of any thread: a thread has done
 * all its events, and looks are in order of time, when another thread comes by.
 * Slices are written by the thread itself, else on its track by the others.
 */
#pragma once

#include "core/thread_list.h"
#include "hooks/code_records.h"
#include "hooks/tracer.h"

enum {
  ST_SHORT_CALLS = 100,  /* so many in a row switch a function off */
  ST_SHOWN_CALLS = 4096, /* frames of a thread; calls within are not shown */
};

struct st_shown_frame {
  uint64_t address; /* of the interpreter's frame */
  struct st_code_record* record;
  uint64_t begin;
  uint64_t last;        /* when it was open for certain */
  uint64_t child_end;   /* of the last call within it that has ended */
  uint64_t short_calls; /* within it and not shown */
  uint64_t short_ns;
  uint64_t unsure_ns; /* it may have begun so much earlier */
  uint32_t mask, since, except;
  uint32_t looks; /* that saw it */
  bool by_look;   /* it may end without an event */
  bool found;     /* and it began without one */
  bool confirmed; /* and is one call for certain */
  bool written;   /* its BEGIN */
};

/* What the thread that looks has seen of a thread last.  It is never freed. */
struct st_looked_at {
  _Atomic uint64_t thread_id;
  _Atomic uint64_t until;  /* so long its stack was as it was */
  _Atomic uint64_t events; /* of the thread: what was handed on may be void */
};

struct st_shown_calls {
  struct st_thread_record thread;
  struct st_shown_frame* frames;
  uint32_t depth, capacity;
  uint32_t begun; /* the first frames, whose BEGINs are written */
  uint32_t by_look;
  uint32_t generation;
  uint64_t last_event; /* time of the thread's last event */
  uint64_t last_look;  /* time of the last look that was merged */
  uint64_t native_id;
  struct st_looked_at* looked_at; /* or NULL */
  PyObject* track;                /* made when another thread writes */
  bool busy; /* its thread is here, maybe waiting without the GIL */
};

struct st_shown_counts {
  uint64_t shown, found, counted; /* slices; of them by looks; short calls */
};

extern _Thread_local struct st_shown_calls* st_thread_shown;
extern struct st_shown_counts st_shown_counts;

/* Of the calling thread, made on first use.  NULL: no memory. */
struct st_shown_calls* st_shown_get(void);
/* Of a thread, made on first use; NULL: no memory. */
struct st_shown_calls* st_shown_of(uint64_t thread_id, uint64_t native_id);
/* The thread has ended. */
void st_shown_gone(struct st_shown_calls* s);
void st_shown_watch_forks(void);

/* A call begins at the frame. */
void st_shown_enter(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now);
/* The call of the frame ends.  False: it isn't among the shown ones. */
bool st_shown_leave(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now);

/* Puts a frame by look at `index`.  NULL: no room. */
struct st_shown_frame* st_shown_insert(struct st_shown_calls* s, uint32_t index,
                                       uint64_t address,
                                       struct st_code_record* record);
/* Takes over until when the frames by look have been there: no later than
 * `now`. */
void st_shown_refresh(struct st_shown_calls* s, uint64_t now);
/* The frames that the last look saw were there at that time, too. */
void st_shown_extend(struct st_shown_calls* s, uint64_t time);
/* Closes the frames from `depth` on, each where it was seen last. */
void st_shown_cut(struct st_shown_calls* s, uint32_t depth);
/* Writes the BEGINs that are due. */
void st_shown_write_due(struct st_shown_calls* s, uint64_t now);
/* Ends all frames of all threads: the recording ends. */
void st_shown_end_all(uint64_t now);

/* Stops the reports of calls to a function, of which `record` is the code. */
void st_shown_switch_off(struct st_code_record* record);
