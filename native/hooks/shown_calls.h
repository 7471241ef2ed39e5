/* Shown calls: the open calls of one thread that may become slices.
 *
 * A call becomes a slice (it is shown) if it lasts at least as long as the
 * threshold.  Shorter calls are only counted, in their caller.  So the BEGIN of
 * a call is not written before the call has reached the threshold.  The BEGIN
 * has the time at which the call began.
 *
 * An open call becomes known in two ways:
 *
 *   by an event    The interpreter reports the begin and the end of the call.
 *   by a sample    The sampling thread reads the thread's stack from time to
 *                  time (stack_sampler.h); stack_samples.h adds its calls here.
 *
 * The end of a sampled call may not be reported.  Such a call is closed
 *   - when its caller returns,
 *   - when a call begins that is not inside it,
 *   - when a later sample does not contain it, or
 *   - when its function is called again at the same address.
 * The call then ends at the latest time at which it was certainly open
 * (`last`), so its slice never overlaps the next call.  A call that only one
 * sample contains is not shown, because it may have been many short calls.
 *
 * Threads: the thread that holds the GIL may change the calls of any thread.
 * This is safe because a thread handles each event completely before it
 * releases the GIL, and samples are merged in the order of their times.
 */
#pragma once

#include "core/hot.h"
#include "core/suspended_calls.h"
#include "core/thread_list.h"
#include "hooks/call_sites.h"
#include "hooks/code_records.h"
#include "hooks/cpu_time.h"
#include "hooks/tracer.h"
#include "probes/time_owners.h"

enum {
  /* A function is switched off after this number of short calls in a row. */
  ST_SHORT_CALLS = 30,
  /* This smaller number suffices if the short calls of the row together last
   * less than the threshold. */
  ST_TINY_CALLS = 10,
  /* The largest number of nested calls that a thread can show. */
  ST_SHOWN_CALLS = 4096,
  /* The largest number of nested calls of C functions (c_calls.h). */
  ST_OPEN_C_CALLS = 8,
};

struct st_shown_frame {
  uint64_t address; /* The address of the interpreter's frame for this call. */
  struct st_code_record* record;
  uint64_t begin;
  /* The latest time at which the call is known to have been open. */
  uint64_t last;
  /* The CPU time that the thread had used when the call began. */
  uint64_t cpu_ns;
  /* The time at which the last inner call of this call ended. */
  uint64_t child_end;
  /* How many inner calls of this call have no slice. */
  uint64_t short_calls;
  uint64_t short_ns;
  /* The call began at most this much earlier or later than `begin`. */
  uint64_t unsure_ns, later_ns;
  uint32_t mask, since, except;
  uint32_t samples; /* The number of stack samples that contain this call. */
  /* A sample contains this call, so the call may end without an event. */
  bool sampled;
  /* The call became known by a sample: it began without an event. */
  bool found;
  /* This frame is certainly one call, not several calls at the same address. */
  bool confirmed;
  bool written; /* The BEGIN of this call was written. */
  /* A generator or coroutine continues, or a suspended call: this is not its
   * first part. */
  bool resumed;
};

/* The length of `ran` in st_last_sample. */
enum { ST_RUN_CALLS = 16 };

/* The last stack sample of a thread.  The struct is never freed, but may be
 * used for another thread later.
 *
 * The sampling thread writes the first three members, with sequentially
 * consistent stores.  It clears `until` before it sets `thread_id`, so a thread
 * that finds its own id there never reads the `until` of an earlier thread.
 *
 * The thread itself writes the other members, with relaxed order.  If the
 * sampling thread misses the last event, it treats the stack as unchanged for
 * one more period. */
struct st_last_sample {
  _Atomic uint64_t thread_id;
  /* The time until which the stack of the thread was unchanged. */
  _Atomic uint64_t until;
  /* The last sample that found the thread waiting. */
  _Atomic uint64_t waited;
  /* How many events the thread has had.  If there was an event after the last
   * sample, the thread's stack may differ from that sample. */
  _Atomic uint64_t events;
  /* The time of the last event. */
  _Atomic uint64_t last_event;
  /* How long the thread had run when its clock was last read at the end of a
   * call; 0 if it never was.  An ended thread has no clock any more. */
  _Atomic uint64_t cpu_ns;
  /* The functions of one part of the time for which the thread has run since its
   * last wait: the innermost one, its caller, ..., NULL.  Each part is chosen
   * with a probability that is proportional to its length. */
  _Atomic(struct st_code_record*) ran[ST_RUN_CALLS];
  /* Functions have the numbers of their totals.  Only the sampling thread uses
   * this. */
  struct st_time_owners owners;
};

/* The slice of a C call. */
struct st_c_slice {
  /* The call was open until this time; 0 if its BEGIN is not written. */
  uint64_t until;
  uint32_t mask, since;
};

struct st_c_call {
  uint64_t frame; /* The address of the calling frame. */
  uint64_t begin, cpu_ns;
  struct st_c_slice slice;
  struct st_call_site* site;
  PyObject* name; /* A strong reference, or NULL. */
};

/* A wait that samples have found.  It is open if `site` is set. */
struct st_wait {
  struct st_call_site* site;
  uint64_t frame; /* The address of the frame that waits. */
  uint64_t begin, begin_at_earliest, cpu_ns;
  struct st_c_slice slice;
};

struct st_c_calls {
  struct st_c_call open[ST_OPEN_C_CALLS]; /* The calls that events reported. */
  uint32_t depth;
  struct st_wait wait;
};

/* A span: a time in which a C function waits or calls Python functions, and whose
 * slice other code writes.  The last garbage collection of a thread, the step of a
 * task that is open, or a wait that hooks measure (lock_waits.h, io_waits.h). */
struct st_span {
  uint64_t frame; /* The address of the frame that has called it. */
  /* `end` is 0 while it is open.  A step is over when the thread leaves its stack
   * (stack_switches.h). */
  uint64_t begin, end;
};

struct st_shown_calls {
  struct st_thread_record thread;
  /* The measured wait: `begin` is 0 if none is open, `end` is that of the last one
   * that became a slice.  The times of such a slice are exact, and those of calls
   * that samples have found are estimates: so these lie outside of the slice.
   * What each wait needs is here, in few lines of the processor's caches. */
  struct st_span measured;
  uint64_t sampled_stacks; /* The `st_sampled_stacks` that are merged. */
  /* The time of this thread's last merged sample. */
  uint64_t last_sample_time;
  uint32_t generation;
  /* Whether the thread is handling an event, perhaps waiting without the
   * GIL. */
  bool busy;
  struct st_shown_frame* frames;
  uint32_t depth, capacity;
  /* The number of outermost frames whose BEGINs are written. */
  uint32_t begun;
  uint32_t sampled;
  /* The time of the event or sample that is being handled. */
  uint64_t now;
  uint64_t last_event; /* The time of the last event of this thread. */
  /* Since when samples of this thread could not be merged; 0 if the last one
   * was. */
  uint64_t missed_since;
  /* How many of the outermost frames all those samples had. */
  int missed_known;
  uint64_t native_id;
  /* The last sample of this thread; NULL before the first one. */
  struct st_last_sample* last_sample;
  /* The track of this thread, for other threads that write to it.  Made at one of
   * the first samples, or at the first write. */
  PyObject* track;
  bool is_track_used;
  uint8_t name_looks; /* By st_shown_note_name(). */
  /* The `raised` argument of st_shown_leave(), a borrowed reference. */
  PyObject* raised;
  struct st_c_calls c_calls;
  struct st_span collection, step; /* `begin` is 0 if there is none. */
  struct st_cpu_time cpu;
  struct st_suspended_calls suspended;
  /* When the thread last left a stack (stack_switches.h): no call on another one
   * begins earlier. */
  uint64_t left_at;
  uint64_t run_ns; /* How long the thread has run since its last wait. */
};

struct st_shown_counts {
  /* The numbers of slices, of slices that only stack samples have found, and of
   * short calls. */
  uint64_t shown, found, counted;
};

extern ST_OWN _Thread_local struct st_shown_calls* st_thread_shown;
extern struct st_shown_counts st_shown_counts;

/* Returns the struct of the calling thread, and makes it on first use.  Returns
 * NULL when out of memory. */
struct st_shown_calls* st_shown_get(void);
/* Returns the struct of any thread, and makes it on first use.  Returns NULL
 * when out of memory. */
struct st_shown_calls* st_shown_of(uint64_t thread_id, uint64_t native_id);
/* Returns the state of the thread that has the calls; NULL if it has ended.  The
 * caller holds the GIL. */
PyThreadState* st_shown_thread(const struct st_shown_calls* s);
/* Ends the open calls of a thread that has ended. */
void st_shown_gone(struct st_shown_calls* s);
/* Ends the open calls of all threads that have ended, and frees their structs.
 * May be called only while no samples of these threads wait to be merged: their
 * calls would be taken for those of a new thread. */
void st_shown_reap(void);
void st_shown_watch_forks(void);

/* Adds the call that begins now.  `address` is the address of its frame. */
void st_shown_enter(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now, bool resumed);
/* Closes the call whose frame has this address, because it ends.  `raised` is
 * the type of the exception that has left the call, or NULL.  Returns false if
 * the call is unknown. */
bool st_shown_leave(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now,
                    PyObject* raised);

/* Inserts a frame of a stack sample, at `index`.  Returns NULL if there is no
 * room for the frame. */
struct st_shown_frame* st_shown_insert(struct st_shown_calls* s, uint32_t index,
                                       uint64_t address,
                                       struct st_code_record* record);
/* A call is open in the frame at `time`.  It may have begun later than the
 * frame's call if begins of calls were not reported since. */
void st_shown_may_begin_later(struct st_shown_frame* frame, uint64_t time);
/* Sets `last` of each frame in the thread's last stack sample.  The new value
 * is the time until which the stack did not change.  If that time is later than
 * `now`, the new value is `now`. */
void st_shown_refresh(struct st_shown_calls* s, uint64_t now);
/* Returns the time until which the thread's stack was unchanged: at most `now`,
 * 0 if there is no sample. */
uint64_t st_shown_unchanged_until(const struct st_shown_calls* s, uint64_t now);
/* Sets `last` to `time` in each frame of the thread's last stack sample.  A time
 * before the end of the last measured wait is too late: it may lie in a wait. */
void st_shown_extend(struct st_shown_calls* s, uint64_t time);
/* Closes all frames deeper than `depth`.  Each call ends at the time `last` of
 * its frame. */
void st_shown_cut(struct st_shown_calls* s, uint32_t depth);
/* Closes the innermost frame.  Its call ends at the latest time at which it is
 * known to have been open: `until` or later if events reported it, but not after
 * `limit`.  Returns that time. */
uint64_t st_shown_end_innermost(struct st_shown_calls* s, uint64_t until,
                                uint64_t limit);
/* Returns the begin of a call in the innermost frame, which was found to begin
 * at the time `begin`.  Frames that only samples have found may have begun
 * earlier than assumed; the begin is not before that of such a frame whose BEGIN
 * is written.  `end` is the end of the call, or 0 if it is open. */
uint64_t st_shown_fit(struct st_shown_calls* s, uint64_t begin, uint64_t end);
/* Closes the sampled calls that are not callers of the thread's innermost
 * frame, whose address is `frame`. */
void st_shown_settle(struct st_shown_calls* s, uint64_t frame);
/* The thread's garbage collection ends now.  The calls that contain it end
 * later. */
void st_shown_collection_ends(struct st_shown_calls* s, uint64_t now);
/* The thread's measured wait ends now: the calls that samples have found around it
 * end later, and those in it, of a signal handler, have ended. */
void st_shown_measured_ends(struct st_shown_calls* s, uint64_t now);
/* Whether the wait that samples have found is the measured one, which is open.  Its
 * slice begins 1 ns before that one's. */
static inline bool st_shown_found_measured(const struct st_shown_calls* s) {
  return s->c_calls.wait.site && s->c_calls.wait.begin + 1 == s->measured.begin;
}
/* The slice of the thread's step was written, up to `now`: the calls that contain
 * it end later. */
void st_shown_step_written(struct st_shown_calls* s, uint64_t now);
/* Notes that an event of the thread happens now: its stack may change. */
void st_shown_note_event(struct st_shown_calls* s, uint64_t now);
/* The same event is the end of a wait. */
void st_shown_note_wait_end(struct st_shown_calls* s);
/* Returns the CPU time to write at the end of a call.  `begin_cpu` is the CPU
 * time at the begin of the call.  If it is unknown, it is 0, and so is the
 * result. */
uint64_t st_shown_thread_time_us(struct st_shown_calls* s, uint64_t begin_cpu,
                                 uint64_t begin, uint64_t end);
/* Removes the open calls of C functions deeper than `depth`, because their ends
 * were missed.  If the BEGIN of such a call was written, its slice ends. */
void st_shown_cut_c_calls(struct st_shown_calls* s, uint32_t depth);
/* Sets *track to the track of a thread.  NULL means the own track of the
 * calling thread.  Returns false if the thread has no track. */
bool st_shown_track(struct st_shown_calls* s, PyObject** track);
/* Looks for the thread's name at its first samples.  Where calls are not reported,
 * all is written by another thread, perhaps when this one has ended, and its name
 * with it. */
void st_shown_note_name(struct st_shown_calls* s);
/* Writes the BEGIN of each call that has lasted as long as the threshold. */
void st_shown_write_due(struct st_shown_calls* s, uint64_t now);
/* Calls `visit` for each thread with open calls.  The time is `now`, or earlier if
 * the thread has ended. */
void st_shown_visit(void (*visit)(struct st_shown_calls* s, uint64_t now),
                    uint64_t now);
/* Reads the CPU time of a thread that is still running, at the end of the
 * recording: since the last reading, the thread may have waited. */
void st_shown_read_cpu(struct st_shown_calls* s, uint64_t now);
/* Ends all open calls of all threads, at the end of the recording. */
void st_shown_end_all(uint64_t now);

/* Counts a short call of a function, and switches the function off after
 * ST_SHORT_CALLS or ST_TINY_CALLS. */
void st_shown_count_short(struct st_code_record* record);
/* Switches a function off: the interpreter reports no further calls of its
 * code. */
void st_shown_switch_off(struct st_code_record* record);
