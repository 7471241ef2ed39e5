/* The C interface of `stretto._native` for other extensions, such as
 * `stretto._pyhooks`: writes slices of calls without running Python code.
 *
 * It is exported as the capsule `stretto._native._track_event_api`. All
 * functions need the GIL, run no Python code on their fast path, never raise,
 * and keep a pending exception set.  Slices are written to the calling thread's
 * own track, even inside an asyncio task, because calls nest per thread.
 *
 *   uint32_t mask = api->begin_code(category, code, 0, 0);  slots that got it
 *   uint32_t since = *api->start_counter;
 *   ...
 *   api->end(mask, since, 0);
 *
 * A timestamp of 0 stands for now.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#define ST_TRACK_EVENT_API "stretto._native._track_event_api"

struct st_clock_pair;

/* The time, track, arguments and flows of an event that is written after it
 * happened. */
struct st_past_event {
  uint64_t timestamp;
  /* The track of the event, a stretto.Track; NULL for the calling thread's
   * track. */
  PyObject* track;
  PyObject* arguments; /* The arguments of the event, a dict, or NULL. */
  /* Each is a stretto.Flow, a list of them, or NULL. */
  PyObject *flow, *terminating_flow;
  /* The CPU time that the thread had used at the time of the event; 0 if that
   * is unknown. */
  uint64_t thread_time_us;
};

enum { ST_PAST_VALUES = 3 };

/* A slice that has ended, with the first `count` values of a template; the others
 * are NULL.  A value may be Py_None. */
struct st_past_slice {
  uint64_t begin, end;
  PyObject* values[ST_PAST_VALUES];
  Py_ssize_t count;
  /* Whether the same objects come again and again.  A str among them is written
   * once in each chunk, and then by an id. */
  bool repeated;
};

struct st_track_event_api {
  /* The time of the trace's clock. */
  uint64_t (*now)(void);
  /* Returns the clock of the calling thread, for st_clock_pair_now(), which is
   * faster.  It exists as long as the thread. */
  struct st_clock_pair* (*clock)(void);
  /* Writes a slice of a template, a stretto.EventTemplate, on a track; NULL is
   * the calling thread's.  Writes nothing while the thread records another
   * event. */
  void (*past_slice)(PyObject* template, PyObject* track,
                     const struct st_past_slice* slice);
  /* Returns the slots that now record the category, a stretto.Category. */
  uint32_t (*enabled)(PyObject* category);
  /* Writes the BEGIN of a slice for the call of a code object, which gives the
   * slice its name and location.  Returns the slots that got the BEGIN.  Writes
   * nothing inside untraced calls (untraced_calls.h), and nothing to the slots
   * in `except`.  Without a timestamp it also leaves out the slots where the
   * call already has a slice by @traced. */
  uint32_t (*begin_code)(PyObject* category, PyObject* code, uint64_t timestamp,
                         uint32_t except);
  /* A call of `code` begins now.  Returns the slots to which @traced has
   * written a slice for this call.  A second query for the call returns 0. */
  uint32_t (*take_traced)(PyObject* code);
  /* Writes the BEGIN of a slice whose name is a str. */
  uint32_t (*begin_name)(PyObject* category, PyObject* name,
                         uint64_t timestamp);
  /* Writes the END of a slice to the slots in `mask`.  Leaves out slots that
   * were started again after the BEGIN. */
  void (*end)(uint32_t mask, uint32_t start_counter, uint64_t timestamp);
  /* Writes the END of a call that an exception of the type `type` has left. */
  void (*end_raised)(uint32_t mask, uint32_t start_counter, uint64_t timestamp,
                     PyObject* type, uint64_t thread_time_us);
  /* Three functions that write a BEGIN, an END and an instant event.  The event
   * has arguments, happened earlier, and is on the track of any thread.
   * `subject` is a code object, or the name of the slice.  They write inside
   * untraced calls, too: a call of the program may become known only there. */
  uint32_t (*begin_past)(PyObject* category, PyObject* subject, uint32_t except,
                         const struct st_past_event* event);
  void (*end_past)(uint32_t mask, uint32_t start_counter,
                   const struct st_past_event* event);
  void (*instant_past)(PyObject* category, PyObject* name,
                       const struct st_past_event* event);
  /* Returns a new reference to the track of a thread of this process, even of a
   * thread that has ended.  Returns NULL with an error set on failure. */
  PyObject* (*thread_track)(uint64_t native_id);
  /* Returns whether thread_track() would find the thread's name now: it has a
   * Thread object, and has not ended.  Runs no Python code. */
  bool (*has_thread_name)(uint64_t native_id);
  /* Prepares the calling thread for its first event: connects the child of a
   * fork to the service, and describes the thread.  May run Python code. */
  void (*prepare)(void);
  /* Returns whether the calling thread is inside an untraced call. */
  bool (*is_untraced)(void);
  /* Sets the function that returns the name of a code object's slices, as a
   * borrowed str.  It runs no Python code. */
  void (*set_code_name)(PyObject* (*name_of)(PyObject* code));
  const _Atomic uint32_t* start_counter;
  /* Drops the current exception, as st_drop_own_error() of handler_errors.h
   * does. */
  void (*drop_own_error)(void);
};
