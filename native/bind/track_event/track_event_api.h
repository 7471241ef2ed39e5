/* What `stretto._native` offers to other extensions, `stretto._pyhooks` first
 * of all: slices for calls, without going through Python.
 *
 * A capsule, `stretto._native._track_event_api`.  All functions need the GIL,
 * run no Python code on their fast path, never raise, and leave a pending
 * exception as it is.  Slices go to the calling thread's own track, also
 * inside an asyncio task: calls nest by thread.
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
#include <stdint.h>

#define ST_TRACK_EVENT_API "stretto._native._track_event_api"

struct st_track_event_api {
  /* Slots that record the category (a stretto.Category) now. */
  uint32_t (*enabled)(PyObject* category);
  /* BEGIN of a slice named and located by a code object; nothing within our own
   * work (own_work.h), nor of the next one.  The slots in `except` are left
   * out, and, for now, those where the call has a slice already. */
  uint32_t (*begin_code)(PyObject* category, PyObject* code, uint64_t timestamp,
                         uint32_t except);
  /* The slots where the call of the code that begins now has a slice already,
   * for it is @traced: tells it once. */
  uint32_t (*take_traced)(PyObject* code);
  /* BEGIN of a slice named by a str. */
  uint32_t (*begin_name)(PyObject* category, PyObject* name,
                         uint64_t timestamp);
  /* END in the slots of mask that have run ever since. */
  void (*end)(uint32_t mask, uint32_t start_counter, uint64_t timestamp);
  const uint32_t* start_counter;
  uint64_t (*now)(void);
  /* For an error that is to be dropped: st_drop_own_error. */
  void (*drop_own_error)(void);
};
