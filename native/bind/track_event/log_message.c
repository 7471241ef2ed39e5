#include "bind/track_event/log_message.h"

#include "bind/common/text.h"
#include "bind/track_event/interning.h"
#include "bind/track_event/source_location.h"
#include "core/fields.h"
#include "core/setters.h"

enum { MAX_MESSAGE_BYTES = 16384 };

static uint32_t append_body(struct thread_state* t, struct thread_sequence* s,
                            PyObject* message) {
  Py_ssize_t size;
  PyObject* release;
  const char* data = utf8_of(message, &size, &release);
  if (data) {
    if (size > MAX_MESSAGE_BYTES)
      size = (Py_ssize_t)cut_utf8(data, MAX_MESSAGE_BYTES);
    append_interned(&t->interned, ST_FIELD_INTERNED_DATA_LOG_MESSAGE_BODY,
                    ++s->log_messages, data, (size_t)size);
  }
  Py_XDECREF(release);
  return data ? s->log_messages : 0;
}

void append_log_message(struct thread_state* t, struct thread_sequence* s,
                        const struct log_message* log) {
  uint32_t location =
      !log->line
          ? 0
          : source_location_iid(t, s, log->file, log->function, log->line);
  uint32_t body = append_body(t, s, log->message);
  append_source_location(t, location);
  uint8_t fields[32], *f = fields;
  if (location)
    f = st_log_message_put_source_location_iid(f, location);
  f = st_log_message_put_body_iid(f, body);
  f = st_log_message_put_prio(f, log->priority);
  uint8_t* p = builder_room(&t->scratch, sizeof fields + 16);
  if (body && p)
    builder_set_end(&t->scratch, st_track_event_put_log_message(
                                     p, fields, (size_t)(f - fields)));
}
