#include "bind/track_event/track.h"

#include <structmember.h>

#include "bind/common/text.h"
#include "bind/common/types.h"
#include "core/setters.h"

#define NAMED_TRACK_MAGIC 0xCD571EC5EAD37024u
#define COUNTER_TRACK_MAGIC 0xB1A4A67D7970839Eu

enum { MAX_COUNTERS = 4096 };

PyTypeObject* st_track_type;
/* The cached counter tracks: a dict from name, or (name, parent), to Track. */
static PyObject* counter_tracks;

uint64_t st_fnv1a(const void* data, size_t size) {
  const uint8_t* bytes = data;
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return hash;
}

static void build_descriptor(TrackObject* t, uint64_t parent_uuid) {
  Py_ssize_t size = 0;
  PyObject* release = NULL;
  const char* name = t->name ? utf8_of(t->name, &size, &release) : NULL;
  uint8_t* data =
      PyMem_RawRealloc(t->descriptor, (size_t)size + t->extra_size + 64);
  if (data) {
    t->descriptor = data;
    uint8_t* p = st_track_descriptor_put_uuid(data, t->core.uuid);
    if (name)
      p = st_track_descriptor_put_name(p, name, (size_t)size);
    if (parent_uuid)
      p = st_track_descriptor_put_parent_uuid(p, parent_uuid);
    if (t->extra_size)
      memcpy(p, t->extra, t->extra_size);
    t->core.descriptor = data;
    t->core.descriptor_size = (size_t)(p - data) + t->extra_size;
  }
  Py_XDECREF(release);
}

const struct st_track* track_of_new_process(TrackObject* t) {
  const struct st_track* process = st_process_track_get();
  t->process_generation = st_process_generation;
  if (t->kind == TRACK_FIXED)
    return &t->core;
  const struct st_track* parent =
      t->parent ? track_resolve((TrackObject*)t->parent) : process;
  t->core.parent = parent;
  t->core.uuid = t->own_id ^ parent->uuid;
  build_descriptor(t, parent->uuid);
  return &t->core;
}

static TrackObject* track_alloc(PyObject* name, PyObject* parent,
                                uint64_t own_id) {
  TrackObject* t = (TrackObject*)st_track_type->tp_alloc(st_track_type, 0);
  if (!t)
    return NULL;
  t->kind = TRACK_CHILD;
  t->name = Py_XNewRef(name);
  t->parent = parent && parent != Py_None ? Py_NewRef(parent) : NULL;
  t->own_id = own_id;
  return t;
}

static uint64_t hash_name(PyObject* name) {
  Py_ssize_t size;
  PyObject* release;
  const char* text = utf8_of(name, &size, &release);
  uint64_t hash = st_fnv1a(text, text ? (size_t)size : 0);
  Py_XDECREF(release);
  return hash;
}

static bool is_track_or_none(PyObject* parent) {
  if (!parent || parent == Py_None || Py_TYPE(parent) == st_track_type)
    return true;
  PyErr_Format(PyExc_TypeError,
               "parent must be a stretto.Track (stretto.thread_track(), "
               "stretto.process_track()), not %R",
               (PyObject*)Py_TYPE(parent));
  return false;
}

static PyObject* track_new(PyTypeObject* Py_UNUSED(type), PyObject* args,
                           PyObject* kwargs) {
  static char* names[] = {"name", "parent", "id", NULL};
  PyObject *name, *parent = NULL;
  unsigned long long id = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|$OK:Track", names, &name,
                                   &parent, &id) ||
      !is_track_or_none(parent))
    return NULL;
  uint64_t own_id = id ^ hash_name(name) ^ NAMED_TRACK_MAGIC;
  return (PyObject*)track_alloc(name, parent, own_id);
}

/* Stores the encoded CounterDescriptor of a track.  Returns false when out of
 * memory. */
static bool describe_counter(TrackObject* t, PyObject* unit) {
  Py_ssize_t size = 0;
  PyObject* release = NULL;
  const char* text = unit ? utf8_of(unit, &size, &release) : NULL;
  size_t room = (size_t)size + 2 * (ST_MAX_TAG + ST_MAX_VARINT);
  uint8_t* encoded = PyMem_RawMalloc(room);
  t->extra = PyMem_RawMalloc(room);
  if (encoded && t->extra) {
    uint8_t* end =
        text ? st_counter_descriptor_put_unit_name(encoded, text, (size_t)size)
             : encoded;
    end = st_track_descriptor_put_counter(t->extra, encoded,
                                          (size_t)(end - encoded));
    t->extra_size = (size_t)(end - t->extra);
  }
  PyMem_RawFree(encoded);
  Py_XDECREF(release);
  return t->extra_size > 0;
}

static TrackObject* make_counter_track(PyObject* name, PyObject* parent,
                                       PyObject* unit) {
  TrackObject* t =
      track_alloc(name, parent, hash_name(name) ^ COUNTER_TRACK_MAGIC);
  if (t && !describe_counter(t, unit)) {
    Py_DECREF(t);
    return (TrackObject*)PyErr_NoMemory();
  }
  return t;
}

TrackObject* counter_track(PyObject* name, PyObject* parent, PyObject* unit) {
  if (parent)
    return make_counter_track(name, parent, unit);
  PyObject* known;
  if (PyDict_GetItemRef(counter_tracks, name, &known) != 0)
    return (TrackObject*)known; /* If the track is NULL, an exception is set. */
  TrackObject* t = make_counter_track(name, NULL, unit);
  if (!t)
    return NULL;
  if (PyDict_Size(counter_tracks) >= MAX_COUNTERS)
    PyDict_Clear(counter_tracks);
  if (PyDict_SetItem(counter_tracks, name, (PyObject*)t) < 0)
    PyErr_Clear();
  return t;
}

PyObject* fixed_track_new(uint64_t uuid, const void* data, size_t size,
                          PyObject* parent) {
  TrackObject* t = track_alloc(NULL, parent, uuid);
  if (!t)
    return NULL;
  t->kind = TRACK_FIXED;
  t->descriptor = PyMem_RawMalloc(size + 1);
  if (!t->descriptor) {
    Py_DECREF(t);
    return PyErr_NoMemory();
  }
  if (size)
    memcpy(t->descriptor, data, size);
  const struct st_track* process = st_process_track_get();
  const struct st_track* above =
      t->parent ? track_resolve((TrackObject*)t->parent) : process;
  t->core = (struct st_track){uuid, t->descriptor, size,
                              above->uuid == uuid ? NULL : above};
  return (PyObject*)t;
}

static PyObject* fixed_track(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long uuid;
  const char* data;
  Py_ssize_t size;
  PyObject* parent = NULL;
  if (!PyArg_ParseTuple(args, "Ky#|O", &uuid, &data, &size, &parent) ||
      !is_track_or_none(parent))
    return NULL;
  return fixed_track_new(uuid, data, (size_t)size, parent);
}

static void track_dealloc(PyObject* self) {
  TrackObject* t = (TrackObject*)self;
  PyMem_RawFree(t->descriptor);
  PyMem_RawFree(t->extra);
  Py_XDECREF(t->parent);
  Py_XDECREF(t->name);
  st_bind_free(self);
}

static PyObject* track_get_uuid(PyObject* self, void* Py_UNUSED(unused)) {
  return PyLong_FromUnsignedLongLong(track_resolve((TrackObject*)self)->uuid);
}

static PyObject* track_repr(PyObject* self) {
  TrackObject* t = (TrackObject*)self;
  if (t->name)
    return PyUnicode_FromFormat("stretto.Track(%R)", t->name);
  char text[48];
  snprintf(text, sizeof text, "stretto.Track(0x%016llx)",
           (unsigned long long)track_resolve(t)->uuid);
  return PyUnicode_FromString(text);
}

static PyMemberDef kMembers[] = {
    {"name", T_OBJECT, offsetof(TrackObject, name), READONLY, NULL},
    {"parent", T_OBJECT, offsetof(TrackObject, parent), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef kGetters[] = {
    {"uuid", track_get_uuid, NULL, "The 64-bit id in the trace.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Track(name, *, parent=None, id=0)\n--\n\n"
     "A row of the timeline, below `parent` or the process."},
    {Py_tp_new, track_new},
    {Py_tp_dealloc, track_dealloc},
    {Py_tp_repr, track_repr},
    {Py_tp_members, kMembers},
    {Py_tp_getset, kGetters},
    {0, NULL}};
static PyType_Spec kSpec = ST_BIND_SPEC("Track", TrackObject, 0, kSlots);

static PyMethodDef kFunctions[] = {
    {"fixed_track", fixed_track, METH_VARARGS,
     "fixed_track(uuid, descriptor, parent=None)"},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(track) {
  counter_tracks = PyDict_New();
  if (!counter_tracks || st_bind_keep_type(module, &kSpec, &st_track_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
