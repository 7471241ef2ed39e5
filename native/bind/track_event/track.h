/* The Python type Track: a row of the timeline that is not a thread's own.
 *
 *   uuid = own id ^ parent's uuid         own id: from the name (and `id`)
 *   TrackDescriptor { 1 uuid, 2 name, 5 parent_uuid, ... }
 *
 * The parent is another track or the process.  After a fork the process is
 * another one, so uuid and descriptor are brought up to date when the track is
 * used.  Two tracks of the same name, id and parent are the same track.
 *
 * Life cycle: a track keeps a reference to its parent; events borrow it.  Used
 * with the GIL.
 *
 * Source of the formulas: docs/formats/track_events.md, "Tracks".
 */
#pragma once

#include "bind/common/python.h"
#include "core/track_event.h"

typedef struct {
  PyObject_HEAD
  struct st_track core;
  uint8_t* descriptor; /* owned; core.descriptor points to it */
  PyObject* parent;    /* Track, or NULL: below the process (or root) */
  PyObject* name;
  uint64_t own_id; /* uuid = own_id ^ parent's uuid */
  uint8_t kind;    /* enum track_kind */
  uint8_t* extra;  /* further encoded TrackDescriptor fields */
  size_t extra_size;
  uint32_t process_generation;
} TrackObject;

enum track_kind { TRACK_CHILD, TRACK_FIXED };

extern PyTypeObject* st_track_type;

/* Brings uuid and descriptor up to date: they depend on the process. */
const struct st_track* track_resolve(TrackObject* track);

/* A new reference to the counter track of that name (a str) below the parent;
 * NULL as parent: the process.  NULL: an exception is set. */
TrackObject* counter_track(PyObject* name, PyObject* parent);

/* A new track whose descriptor was encoded elsewhere (a thread, a process, a
 * task); it does not change with the process.  NULL: an exception is set. */
PyObject* fixed_track_new(uint64_t uuid, const void* descriptor, size_t size,
                          PyObject* parent);
