/* thread_track() and process_track(): the tracks of the calling thread and of
 * this process, as Track objects.
 */
#include "bind/track_event/process_track.h"
#include "bind/track_event/thread_state.h"
#include "bind/track_event/track.h"

static PyObject* thread_track(PyObject* Py_UNUSED(module),
                              PyObject* Py_UNUSED(unused)) {
  struct thread_state* t = thread_state_get();
  if (!t)
    Py_RETURN_NONE;
  return fixed_track_new(t->track.uuid, t->track.descriptor,
                         t->track.descriptor_size, NULL);
}

static PyObject* process_track(PyObject* Py_UNUSED(module),
                               PyObject* Py_UNUSED(unused)) {
  const struct st_track* process = st_process_track_get();
  return fixed_track_new(process->uuid, process->descriptor,
                         process->descriptor_size, NULL);
}

static PyMethodDef kFunctions[] = {
    {"thread_track", thread_track, METH_NOARGS,
     "thread_track()\n--\n\nReturn the track of the calling thread."},
    {"process_track", process_track, METH_NOARGS,
     "process_track()\n--\n\nReturn the track of this process."},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(own_tracks) {
  return PyModule_AddFunctions(module, kFunctions);
}
