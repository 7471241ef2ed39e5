#include "bind/track_event/source_location.h"

#include "bind/common/text.h"
#include "bind/track_event/interning.h"
#include "core/fields.h"
#include "core/setters.h"

PyObject* (*st_code_name_function)(PyObject* code);

static void append_entry(struct thread_state* t, uint32_t iid, const char* file,
                         size_t file_size, const char* function,
                         size_t function_size, uint32_t line) {
  size_t bound = file_size + function_size + 48;
  uint8_t* p = builder_room(&t->interned, bound);
  if (!p)
    return;
  p = st_put_tag(p, ST_FIELD_INTERNED_DATA_SOURCE_LOCATIONS, ST_WIRE_DELIMITED);
  uint8_t* size_field = p;
  p += ST_SIZE_FIELD;
  p = st_source_location_put_iid(p, iid);
  p = st_source_location_put_file_name(p, file, file_size);
  p = st_source_location_put_function_name(p, function, function_size);
  p = st_source_location_put_line_number(p, line);
  st_put_size_field(size_field, (uint32_t)(p - size_field - ST_SIZE_FIELD));
  builder_set_end(&t->interned, p);
}

uint32_t source_location_iid(struct thread_state* t, struct thread_sequence* s,
                             PyObject* file, PyObject* function,
                             uint32_t line) {
  Py_ssize_t file_size, function_size;
  PyObject *release_file, *release_function;
  const char* file_data = utf8_of(file, &file_size, &release_file);
  const char* function_data =
      utf8_of(function, &function_size, &release_function);
  uint32_t iid = 0;
  if (file_data && function_data) {
    /* Two locations are the same if they have the same line and file name. */
    char key[ST_INTERN_MAX_LENGTH + 1];
    int size = snprintf(key, sizeof key, "%u:%.*s", line, ST_INTERN_MAX_LENGTH,
                        file_data);
    bool is_new = false;
    if (size <= ST_INTERN_MAX_LENGTH)
      iid = st_intern(&s->core.interned, ST_INTERN_SOURCE_LOCATION, key,
                      (size_t)size, &is_new);
    if (iid && is_new)
      append_entry(t, iid, file_data, (size_t)file_size, function_data,
                   (size_t)function_size, line);
  }
  Py_XDECREF(release_file);
  Py_XDECREF(release_function);
  return iid;
}

uint32_t code_location_iid(struct thread_state* t, struct thread_sequence* s,
                           PyObject* object) {
  uint32_t iid = st_identity_find(&s->locations, s->core.epoch, object);
  if (iid)
    return iid;
  PyCodeObject* code = (PyCodeObject*)object;
  iid = source_location_iid(t, s, code->co_filename, code_name(object),
                            (uint32_t)code->co_firstlineno);
  if (iid)
    identity_put(t, &s->locations, s->core.epoch, object, iid);
  return iid;
}

void append_source_location(struct thread_state* t, uint32_t iid) {
  uint8_t* p = iid ? builder_room(&t->scratch, 16) : NULL;
  if (p)
    builder_set_end(&t->scratch,
                    st_track_event_put_source_location_iid(p, iid));
}
