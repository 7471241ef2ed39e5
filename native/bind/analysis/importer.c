/* TraceImporter and ArrowTable: a trace as tables.
 *
 *   importer = TraceImporter(inflate)      inflate: zlib.decompress
 *   importer.keep_raw_events()             fills their tables: raw_events.h
 *   importer.feed(data)                    any number of times
 *   importer.has_packets()                 whether the file consists of packets
 *   importer.cut_off()                     notes that the end is missing
 *   importer.next_file()                   the data of another file follow
 *   importer.finish()
 *   importer.tables()                      names, without those of raw events
 *   importer.raw_events()                  their number, filled or not
 *   importer.rows("slice")                 (names of columns, list of tuples)
 *   importer.arrow("slice")                an ArrowTable
 *   importer.slice_totals("function")      first and end time, list of tuples
 *   importer.slices_named("name")          list of (time, duration, track id,
 *   importer.slices_with_argument("key")     flow id, dict of arguments)
 *   importer.heap_classes()                list of tuples
 *   importer.sample_hits()                 list of tuples
 *
 * An ArrowTable has the methods of Arrow's PyCapsule interface.  The GIL is
 * released while bytes are read, but held while `inflate` runs.
 */
#include "analysis/importer.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrow.h"
#include "analysis/heap_dominators.h"
#include "analysis/slice_selection.h"
#include "analysis/slice_totals.h"
#include "bind/common/arguments.h"
#include "bind/common/errors.h"
#include "bind/common/types.h"

struct importer_object {
  PyObject_HEAD
  struct st_importer* importer;
  PyObject* inflate;
  bool is_busy;
};

struct arrow_object {
  PyObject_HEAD
  struct st_importer* importer;
  const struct st_table* table;
};

/* Called without the GIL.  Errors of `inflate` mean a damaged stream. */
static uint8_t* inflate(void* context, const uint8_t* data, size_t size,
                        size_t* out_size) {
  struct importer_object* self = context;
  uint8_t* copy = NULL;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* bytes =
      PyBytes_FromStringAndSize((const char*)data, (Py_ssize_t)size);
  PyObject* result =
      bytes ? PyObject_CallFunctionObjArgs(self->inflate, bytes, NULL) : NULL;
  if (result && PyBytes_Check(result)) {
    *out_size = (size_t)PyBytes_GET_SIZE(result);
    copy = malloc(*out_size + 1);
    if (copy)
      memcpy(copy, PyBytes_AS_STRING(result), *out_size);
  }
  Py_XDECREF(result);
  Py_XDECREF(bytes);
  PyErr_Clear();
  PyGILState_Release(gil);
  return copy;
}

static PyObject* importer_new(PyTypeObject* type, PyObject* args,
                              PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 1, "TraceImporter", "inflate");
  PyObject* in[1];
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in))
    return NULL;
  struct importer_object* self =
      (struct importer_object*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  self->inflate = Py_NewRef(in[0]);
  self->importer = st_importer_new();
  if (!self->importer) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->importer->inflate = inflate;
  self->importer->inflate_context = self;
  return (PyObject*)self;
}

static void importer_dealloc(PyObject* object) {
  struct importer_object* self = (struct importer_object*)object;
  st_importer_free(self->importer);
  Py_XDECREF(self->inflate);
  st_bind_free(object);
}

/* Marks the importer as busy, before a thread uses it without the GIL. */
static bool enter(struct importer_object* self) {
  if (self->is_busy || self->importer->finished) {
    set_protocol_error(self->is_busy
                           ? "the trace is being read by another thread"
                           : "the trace has been read: make another importer");
    return false;
  }
  self->is_busy = true;
  return true;
}

static PyObject* leave(struct importer_object* self, bool done) {
  self->is_busy = false;
  if (!done)
    return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject* feed(PyObject* object, PyObject* data) {
  struct importer_object* self = (struct importer_object*)object;
  Py_buffer bytes;
  if (!st_bind_bytes(data, "data", &bytes))
    return NULL;
  bool done = false;
  PyObject* result = NULL;
  if (enter(self)) {
    Py_BEGIN_ALLOW_THREADS
    done = st_importer_feed(self->importer, bytes.buf, (size_t)bytes.len);
    Py_END_ALLOW_THREADS
    result = leave(self, done);
  }
  PyBuffer_Release(&bytes);
  return result;
}

/* Runs a step of the importer without the GIL. */
static PyObject* run(PyObject* object, bool (*step)(struct st_importer*)) {
  struct importer_object* self = (struct importer_object*)object;
  bool done;
  if (!enter(self))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  done = step(self->importer);
  Py_END_ALLOW_THREADS
  return leave(self, done);
}

static PyObject* next_file(PyObject* object, PyObject* Py_UNUSED(none)) {
  return run(object, st_importer_next_file);
}

static PyObject* finish(PyObject* object, PyObject* Py_UNUSED(none)) {
  return run(object, st_importer_finish);
}

static PyObject* has_packets(PyObject* object, PyObject* Py_UNUSED(none)) {
  const struct importer_object* self = (struct importer_object*)object;
  return PyBool_FromLong(self->importer->kind <= ST_FILE_PACKETS);
}

static PyObject* cut_off(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct importer_object* self = (struct importer_object*)object;
  if (!enter(self))
    return NULL;
  self->importer->is_cut_off = true;
  return leave(self, true);
}

static bool is_finished(const struct importer_object* self) {
  bool finished = self->importer->finished && !self->importer->failed;
  if (!finished)
    set_protocol_error("the tables are complete after finish()");
  return finished;
}

static PyObject* keep_raw_events(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct importer_object* self = (struct importer_object*)object;
  if (!enter(self))
    return NULL;
  self->importer->raw.is_kept = true;
  return leave(self, true);
}

static PyObject* raw_events(PyObject* object, PyObject* Py_UNUSED(none)) {
  const struct importer_object* self = (struct importer_object*)object;
  return PyLong_FromUnsignedLongLong(self->importer->raw.count);
}

static PyObject* tables(PyObject* object, PyObject* Py_UNUSED(none)) {
  const struct st_storage* s =
      &((struct importer_object*)object)->importer->storage;
  PyObject* names = PyTuple_New(ST_FIRST_RAW_TABLE);
  for (Py_ssize_t i = 0; names && i < ST_FIRST_RAW_TABLE; i++) {
    PyObject* name = PyUnicode_FromString(s->tables[i].spec->name);
    if (!name)
      Py_CLEAR(names);
    else
      PyTuple_SET_ITEM(names, i, name);
  }
  return names;
}

/* Returns the table; NULL with an exception if there is none. */
static const struct st_table* find_table(struct importer_object* self,
                                         PyObject* name) {
  if (!is_finished(self))
    return NULL;
  for (size_t i = 0; PyUnicode_Check(name) && i < ST_TABLE_COUNT; i++) {
    const struct st_table* t = &self->importer->storage.tables[i];
    if (PyUnicode_CompareWithASCIIString(name, t->spec->name) == 0)
      return t;
  }
  PyErr_Format(PyExc_KeyError, "no table %R", name);
  return NULL;
}

static PyObject* text_object(const struct st_string_pool* pool, st_string id) {
  size_t size;
  const char* text = st_string_text(pool, id, &size);
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

static PyObject* cell_object(const struct st_storage* s,
                             const struct st_table* t, uint32_t row,
                             uint32_t column) {
  struct st_cell cell = st_table_get(t, row, column);
  if (!cell.valid)
    return Py_NewRef(Py_None);
  switch (t->spec->columns[column].type) {
    case ST_TEXT:
      return text_object(&s->strings, (st_string)cell.i);
    case ST_DOUBLE:
      return PyFloat_FromDouble(cell.f);
    default:
      return PyLong_FromLongLong(cell.i);
  }
}

static PyObject* row_object(const struct st_storage* s,
                            const struct st_table* t, uint32_t row) {
  PyObject* tuple = PyTuple_New(t->spec->column_count);
  for (uint32_t i = 0; tuple && i < t->spec->column_count; i++) {
    PyObject* value = cell_object(s, t, row, i);
    if (!value)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, value);
  }
  return tuple;
}

static PyObject* rows(PyObject* object, PyObject* name) {
  struct importer_object* self = (struct importer_object*)object;
  const struct st_table* t = find_table(self, name);
  PyObject* names = t ? PyTuple_New(t->spec->column_count) : NULL;
  PyObject* list = names ? PyList_New(t->rows) : NULL;
  for (uint32_t i = 0; list && i < t->spec->column_count; i++) {
    PyObject* column = PyUnicode_FromString(t->spec->columns[i].name);
    if (!column)
      Py_CLEAR(list);
    else
      PyTuple_SET_ITEM(names, i, column);
  }
  for (uint32_t i = 0; list && i < t->rows; i++) {
    PyObject* row = row_object(&self->importer->storage, t, i);
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, row);
  }
  if (!list) {
    Py_XDECREF(names);
    return NULL;
  }
  return Py_BuildValue("NN", names, list);
}

/* Returns a string; None for the placeholder of no string. */
static PyObject* optional_text(const struct st_string_pool* pool,
                               st_string text) {
  return text ? text_object(pool, text) : Py_NewRef(Py_None);
}

static PyObject* total_object(const struct st_string_pool* pool,
                              const struct st_slice_total* total) {
  PyObject* category = optional_text(pool, total->category);
  PyObject* name = optional_text(pool, total->name);
  PyObject* file = optional_text(pool, total->file);
  if (!category || !name || !file) {
    Py_XDECREF(category);
    Py_XDECREF(name);
    Py_XDECREF(file);
    return NULL;
  }
  return Py_BuildValue("NNIILLLLLLLN", category, name, (unsigned)total->track,
                       (unsigned)total->count, (long long)total->total,
                       (long long)total->self, (long long)total->p50,
                       (long long)total->p90, (long long)total->p99,
                       (long long)total->max, (long long)total->cpu, file);
}

static PyObject* totals_object(const struct st_string_pool* pool,
                               const struct st_slice_totals* totals) {
  PyObject* list = PyList_New(totals->groups.size);
  for (uint32_t i = 0; list && i < totals->groups.size; i++) {
    PyObject* row = total_object(pool, &totals->groups.data[i]);
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, row);
  }
  return list ? Py_BuildValue("LLN", (long long)totals->first_ts,
                              (long long)totals->end_ts, list)
              : NULL;
}

static PyObject* slice_totals(PyObject* object, PyObject* grouping) {
  static const char* const kGroupings[] = {"function", "category", "track",
                                           "task"};
  struct importer_object* self = (struct importer_object*)object;
  int by = 0;
  if (!is_finished(self))
    return NULL;
  while (by < 4 &&
         !(PyUnicode_Check(grouping) &&
           PyUnicode_CompareWithASCIIString(grouping, kGroupings[by]) == 0))
    by++;
  if (by == 4)
    return PyErr_Format(PyExc_ValueError, "no grouping %R", grouping);
  struct st_slice_totals totals = {0};
  bool done;
  Py_BEGIN_ALLOW_THREADS
  done =
      st_slice_totals(&totals, &self->importer->storage, (enum st_grouping)by);
  Py_END_ALLOW_THREADS
  PyObject* result =
      done ? totals_object(&self->importer->storage.strings, &totals)
           : PyErr_NoMemory();
  st_slice_totals_free(&totals);
  return result;
}

static PyObject* class_object(const struct st_storage* s,
                              const struct st_heap_retained* c) {
  PyObject* name = cell_object(s, &s->tables[ST_HEAP_CLASS_TABLE], c->class_row,
                               ST_HEAP_CLASS_name);
  return name ? Py_BuildValue("ILNLLL", c->upid, (long long)c->ts, name,
                              (long long)c->objects, (long long)c->size,
                              (long long)c->retained)
              : NULL;
}

static PyObject* heap_classes(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct importer_object* self = (struct importer_object*)object;
  struct st_heap_classes classes = {0};
  bool done;
  if (!is_finished(self))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  done = st_heap_retained(self->importer, &classes);
  Py_END_ALLOW_THREADS
  PyObject* list = done ? PyList_New(classes.count) : PyErr_NoMemory();
  for (uint32_t i = 0; list && i < classes.count; i++) {
    PyObject* row = class_object(&self->importer->storage, &classes.rows[i]);
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, row);
  }
  free(classes.rows);
  return list;
}

/* The column of an argument's value. */
static uint32_t value_column(const struct st_table* args, uint32_t row) {
  if (st_table_get(args, row, ST_ARGS_string_value).valid)
    return ST_ARGS_string_value;
  bool is_real = st_table_get(args, row, ST_ARGS_real_value).valid;
  return is_real ? ST_ARGS_real_value : ST_ARGS_int_value;
}

/* Returns the arguments of a slice, as a dict by key. */
static PyObject* arguments_object(const struct st_storage* s,
                                  const struct st_selected_slice* slice) {
  const struct st_table* t = &s->tables[ST_ARGS_TABLE];
  PyObject* dict = PyDict_New();
  for (uint32_t i = 0; dict && i < slice->argument_count; i++) {
    uint32_t row = slice->first_argument + i;
    PyObject* key = cell_object(s, t, row, ST_ARGS_key);
    PyObject* value = key ? cell_object(s, t, row, value_column(t, row)) : NULL;
    if (!value || PyDict_SetItem(dict, key, value) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
    Py_XDECREF(key);
  }
  return dict;
}

static PyObject* selected_object(const struct st_storage* s,
                                 const struct st_selected_slice* slice) {
  const struct st_table* t = &s->tables[ST_SLICE_TABLE];
  PyObject* arguments = arguments_object(s, slice);
  if (!arguments)
    return NULL;
  return Py_BuildValue(
      "LLLKN", (long long)st_table_get(t, slice->row, ST_SLICE_ts).i,
      (long long)st_table_get(t, slice->row, ST_SLICE_dur).i,
      (long long)st_table_get(t, slice->row, ST_SLICE_track_id).i,
      (unsigned long long)slice->flow, arguments);
}

static PyObject* selection_object(const struct st_storage* s,
                                  const struct st_slice_selection* found) {
  PyObject* list = PyList_New(found->slices.size);
  for (uint32_t i = 0; list && i < found->slices.size; i++) {
    PyObject* row = selected_object(s, &found->slices.data[i]);
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, row);
  }
  return list;
}

static PyObject* select_slices(struct importer_object* self, PyObject* text,
                               enum st_selection by) {
  const struct st_importer* m = self->importer;
  struct st_slice_selection found = {0};
  Py_ssize_t size;
  if (!is_finished(self))
    return NULL;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
  if (!bytes)
    return NULL;
  bool done;
  Py_BEGIN_ALLOW_THREADS
  done =
      st_select_slices(&found, &m->storage, &m->flows, by, bytes, (size_t)size);
  Py_END_ALLOW_THREADS
  PyObject* result =
      done ? selection_object(&m->storage, &found) : PyErr_NoMemory();
  st_slice_selection_free(&found);
  return result;
}

static PyObject* slices_named(PyObject* object, PyObject* name) {
  return select_slices((struct importer_object*)object, name, ST_WITH_NAME);
}

static PyObject* slices_with_argument(PyObject* object, PyObject* key) {
  return select_slices((struct importer_object*)object, key, ST_WITH_ARGUMENT);
}

static void arrow_dealloc(PyObject* object) {
  st_importer_free(((struct arrow_object*)object)->importer);
  st_bind_free(object);
}

/* The destructors of capsules release what no consumer has taken. */
#define DESTRUCTOR(function, type, name)                        \
  static void function(PyObject* capsule) {                     \
    struct type* content = PyCapsule_GetPointer(capsule, name); \
    if (content && content->release)                            \
      content->release(content);                                \
    free(content);                                              \
  }
DESTRUCTOR(free_schema, ArrowSchema, "arrow_schema")
DESTRUCTOR(free_stream, ArrowArrayStream, "arrow_array_stream")

static PyObject* make_capsule(void* content, bool filled, const char* name,
                              PyCapsule_Destructor destructor) {
  PyObject* capsule =
      filled ? PyCapsule_New(content, name, destructor) : PyErr_NoMemory();
  if (!capsule)
    free(content);
  return capsule;
}

static PyObject* schema_capsule(const struct arrow_object* self) {
  struct ArrowSchema* schema = calloc(1, sizeof *schema);
  bool filled = schema && st_arrow_schema(self->table, schema);
  return make_capsule(schema, filled, "arrow_schema", free_schema);
}

static PyObject* arrow_schema(PyObject* object, PyObject* Py_UNUSED(none)) {
  return schema_capsule((struct arrow_object*)object);
}

static PyObject* arrow_stream(PyObject* object, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(kSignature, 0, "__arrow_c_stream__", "requested_schema");
  const struct arrow_object* self = (struct arrow_object*)object;
  PyObject* in[1];
  if (!st_bind_arguments(&kSignature, args, count, kwnames, in))
    return NULL;
  struct ArrowArrayStream* stream = calloc(1, sizeof *stream);
  bool filled = stream && st_arrow_stream(self->importer, self->table, stream);
  return make_capsule(stream, filled, "arrow_array_stream", free_stream);
}

static PyObject* hit_object(const struct st_storage* s,
                            struct st_sample_hit hit) {
  PyObject* counter = text_object(&s->strings, hit.period.counter);
  return counter ? Py_BuildValue("IIKNK", hit.utid, hit.callsite,
                                 (unsigned long long)hit.period.period, counter,
                                 (unsigned long long)hit.samples)
                 : NULL;
}

static PyObject* sample_hits(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct importer_object* self = (struct importer_object*)object;
  if (!is_finished(self))
    return NULL;
  const struct st_sample_hits* hits = &self->importer->perf.hits;
  PyObject* list = PyList_New(st_sample_hits_count(hits));
  for (uint32_t i = 0; list && i < st_sample_hits_count(hits); i++) {
    PyObject* row =
        hit_object(&self->importer->storage, st_sample_hits_at(hits, i));
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, row);
  }
  return list;
}

static PyMethodDef kArrowMethods[] = {
    {"__arrow_c_schema__", arrow_schema, METH_NOARGS, NULL},
    ST_BIND_KEYWORDS("__arrow_c_stream__", arrow_stream, NULL),
    {0},
};

static PyType_Slot kArrowSlots[] = {
    {Py_tp_dealloc, arrow_dealloc},
    {Py_tp_methods, kArrowMethods},
    {0},
};

static PyType_Spec kArrowSpec =
    ST_BIND_SPEC("ArrowTable", struct arrow_object,
                 Py_TPFLAGS_DISALLOW_INSTANTIATION, kArrowSlots);

static PyTypeObject* arrow_table_type;

static PyObject* arrow(PyObject* object, PyObject* name) {
  struct importer_object* self = (struct importer_object*)object;
  const struct st_table* t = find_table(self, name);
  struct arrow_object* made =
      t ? (struct arrow_object*)PyType_GenericAlloc(arrow_table_type, 0) : NULL;
  if (!made)
    return NULL;
  st_importer_keep(self->importer);
  made->importer = self->importer;
  made->table = t;
  return (PyObject*)made;
}

static PyMethodDef kImporterMethods[] = {
    {"feed", feed, METH_O, NULL},
    {"has_packets", has_packets, METH_NOARGS, NULL},
    {"cut_off", cut_off, METH_NOARGS, NULL},
    {"keep_raw_events", keep_raw_events, METH_NOARGS, NULL},
    {"raw_events", raw_events, METH_NOARGS, NULL},
    {"next_file", next_file, METH_NOARGS, NULL},
    {"finish", finish, METH_NOARGS, NULL},
    {"tables", tables, METH_NOARGS, NULL},
    {"rows", rows, METH_O, NULL},
    {"slice_totals", slice_totals, METH_O, NULL},
    {"slices_named", slices_named, METH_O, NULL},
    {"slices_with_argument", slices_with_argument, METH_O, NULL},
    {"heap_classes", heap_classes, METH_NOARGS, NULL},
    {"sample_hits", sample_hits, METH_NOARGS, NULL},
    {"arrow", arrow, METH_O, NULL},
    {0},
};

static PyType_Slot kImporterSlots[] = {
    {Py_tp_new, importer_new},
    {Py_tp_dealloc, importer_dealloc},
    {Py_tp_methods, kImporterMethods},
    {0},
};

static PyType_Spec kImporterSpec =
    ST_BIND_SPEC("TraceImporter", struct importer_object, 0, kImporterSlots);

ST_BIND_PART(importer) {
  if (st_bind_keep_type(module, &kArrowSpec, &arrow_table_type) < 0)
    return -1;
  return st_bind_add_type(module, &kImporterSpec);
}
