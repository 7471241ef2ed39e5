/* The Python type Track: a row of the timeline besides the threads' rows.
 *
 *   uuid = own id ^ parent's uuid         own id: from the name (and `id`)
 *   TrackDescriptor { 1 uuid, 2 name, 5 parent_uuid, ... }
 *
 * The parent is another track or the process.  A fork changes the process, so
 * uuid and descriptor are updated when the track is used next.  Two Track
 * objects with the same name, id and parent are the same row.
 *
 * Life cycle: a track keeps a reference to its parent; events borrow it.  Used
 * with the GIL.
 *
 * Source of the formulas: docs/formats/track_events.md, "Tracks".
 */
#pragma once

#include "bind/common/python.h"
#include "bind/track_event/process_track.h"
#include "core/track_event.h"

typedef struct {
  PyObject_HEAD
  struct st_track core;
  /* The memory of core.descriptor, which the track owns. */
  uint8_t* descriptor;
  /* The parent Track; NULL for a root track or if the parent is the process. */
  PyObject* parent;
  PyObject* name;
  /* The track's own part of its uuid: uuid = own_id ^ uuid of the parent. */
  uint64_t own_id;
  uint8_t kind;   /* The kind of the track, a value of enum track_kind. */
  uint8_t* extra; /* Further encoded fields of the TrackDescriptor. */
  size_t extra_size;
  uint32_t process_generation;
} TrackObject;

enum track_kind { TRACK_CHILD, TRACK_FIXED };

extern PyTypeObject* st_track_type;

/* Changes the uuid and the descriptor of a track to those of the current
 * process, and returns the track's description. */
const struct st_track* track_of_new_process(TrackObject* track);

/* Returns the track's description.  At the first use in a process, that is also
 * after a fork, first changes its uuid and descriptor. */
static inline const struct st_track* track_resolve(TrackObject* track) {
  return LIKELY(track->process_generation == st_process_generation)
             ? &track->core
             : track_of_new_process(track);
}

/* Returns a new reference to the counter track with this name (a str) and
 * parent.  If `parent` is NULL, the parent is the process, and the unit (a str,
 * or NULL) is that of the first call.  Returns NULL with an exception set on
 * failure. */
TrackObject* counter_track(PyObject* name, PyObject* parent, PyObject* unit);

/* Returns a new track with a given descriptor, for a thread, a process or a
 * task. The track stays the same after a fork.  Returns NULL with an exception
 * set on failure. */
PyObject* fixed_track_new(uint64_t uuid, const void* descriptor, size_t size,
                          PyObject* parent);
