/* Arguments of track events, other than debug annotations. */
#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "event_parts.h"
#include "importer.h"
#include "messages.h"

#define FIELD(name) ST_FIELD_TRACK_EVENT_##name
#define INTERNED(name) ST_FIELD_INTERNED_DATA_##name

/* TaskExecution.posted_from_iid, ChromeHistogramSample.name_iid,
 * ChromeActiveProcesses.pid */
enum { TASK_POSTED_FROM_IID = 1, HISTOGRAM_NAME_IID = 4, ACTIVE_PID = 1 };

struct location {
  st_string file, function;
  uint64_t line;
};

static st_string text_of(struct st_importer* m, struct st_field f,
                         bool slashes) {
  if (!f.data)
    return 0;
  if (!slashes || !memchr(f.data, '\\', f.size))
    return st_string_add(&m->storage.strings, f.data, f.size);
  char* path = st_bytes_take(&m->arena, f.size);
  for (size_t i = 0; i < f.size; i++)
    path[i] = f.data[i] == '\\' ? '/' : (char)f.data[i];
  return st_string_add(&m->storage.strings, path, f.size);
}

static struct location read_location(struct st_importer* m, const uint8_t* data,
                                     size_t size, bool slashes) {
  struct location location = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_SOURCE_LOCATION_FILE_NAME)
      location.file = text_of(m, f, slashes);
    else if (f.number == ST_FIELD_SOURCE_LOCATION_FUNCTION_NAME)
      location.function = text_of(m, f, false);
    else if (f.number == ST_FIELD_SOURCE_LOCATION_LINE_NUMBER)
      location.line = (uint32_t)f.value;
  }
  return location;
}

static bool find_location(struct st_importer* m, uint32_t generation,
                          uint64_t iid, bool slashes,
                          struct location* location) {
  const struct st_interned* entry = st_interned_find(
      &m->sequences, generation, INTERNED(SOURCE_LOCATIONS), iid);
  if (entry)
    *location = read_location(m, entry->data, entry->size, slashes);
  return entry != NULL;
}

/* Sets the key of the next argument: a prefix and a name. */
static st_string key_of(struct st_importer* m, const char* prefix,
                        const char* name) {
  char key[64];
  size_t a = strlen(prefix), b = strlen(name);
  memcpy(key, prefix, a);
  memcpy(key + a, name, b);
  return st_string_add(&m->storage.strings, key, a + b);
}

static void add_text(struct st_importer* m, struct st_arg_list* args,
                     st_string key, st_string text) {
  st_arg_add_text(args, key,
                  text ? text : st_string_add(&m->storage.strings, "", 0));
}

static void add_location(struct st_importer* m, struct st_arg_list* args,
                         const char* prefix, struct location location,
                         enum st_arg_type line_type) {
  add_text(m, args, key_of(m, prefix, ".file_name"), location.file);
  st_arg_add_text(args, key_of(m, prefix, ".function_name"), location.function);
  if (location.line)
    st_arg_add_int(args, key_of(m, prefix, ".line_number"), line_type,
                   (int64_t)location.line);
}

static void add_location_iid(struct st_importer* m, uint32_t generation,
                             uint64_t iid, const char* prefix,
                             struct st_arg_list* args) {
  struct location location;
  if (iid && find_location(m, generation, iid, true, &location))
    add_location(m, args, prefix, location, ST_ARG_UINT);
  else
    m->counts.parser_errors++;
}

bool st_add_location_args(struct st_importer* m, uint32_t generation,
                          uint64_t iid, const char* prefix,
                          struct st_arg_list* args) {
  struct location location;
  bool found = find_location(m, generation, iid, true, &location);
  if (found)
    add_location(m, args, prefix, location, ST_ARG_INT);
  return found;
}

static void add_task(struct st_importer* m, uint32_t generation,
                     struct st_field task, struct st_arg_list* args) {
  add_location_iid(m, generation,
                   st_message_find(task, TASK_POSTED_FROM_IID).value,
                   "task.posted_from", args);
}

/* Adds the processes that Chromium says are running. */
static void add_active_processes(struct st_importer* m,
                                 struct st_field processes) {
  struct st_integers pids;
  uint64_t pid;
  st_integers_init(&pids, processes, ACTIVE_PID);
  while (st_integers_next(&pids, &pid))
    st_process_get(&m->processes, (uint32_t)pid);
}

/* Adds the name of a histogram, if it is interned. */
static void add_histogram(struct st_importer* m, uint32_t generation,
                          struct st_field sample, struct st_arg_list* args) {
  struct st_field iid = st_message_find(sample, HISTOGRAM_NAME_IID);
  st_string name = iid.number
                       ? st_interned_text(&m->sequences, generation,
                                          INTERNED(HISTOGRAM_NAMES), iid.value)
                       : 0;
  if (name)
    st_arg_add_text(
        args, st_intern(&m->storage, "chrome_histogram_sample.name"), name);
}

static st_string log_tag(struct st_importer* m, struct location location) {
  size_t size = 0;
  const char* file =
      location.file ? st_string_text(&m->storage.strings, location.file, &size)
                    : "";
  char* tag = st_bytes_take(&m->arena, size + 24);
  char digits[24];
  size_t n = 0;
  memcpy(tag, file, size);
  tag[size++] = ':';
  do
    digits[n++] = (char)('0' + location.line % 10);
  while (location.line /= 10);
  while (n)
    tag[size++] = digits[--n];
  return st_string_add(&m->storage.strings, tag, size);
}

static void add_log_row(struct st_importer* m, int64_t ts, uint32_t utid,
                        uint64_t priority, st_string tag, st_string body) {
  struct st_table* t = &m->storage.tables[ST_LOG_TABLE];
  struct st_cell cells[ST_LOG_COLUMNS] = {
      [ST_LOG_id] = st_int(t->rows),
      [ST_LOG_ts] = st_int(ts),
      [ST_LOG_utid] = st_int(utid),
      [ST_LOG_prio] = st_int(priority ? (int64_t)priority : 4),
      [ST_LOG_tag] = st_text(tag),
      [ST_LOG_msg] = st_text(body),
  };
  st_table_add(t, cells);
}

/* Adds a log message both as arguments and as a row of android_logs. */
static void add_log(struct st_importer* m, const struct st_event* e,
                    uint32_t utid, struct st_field log,
                    struct st_arg_list* args) {
  struct location location = {0};
  bool has_location = false;
  st_string body = 0;
  uint64_t priority = 0;
  struct st_decoder d;
  struct st_field f;
  if (utid == ST_NO_ROW) {
    m->counts.parser_errors++;
    return;
  }
  st_decoder_init(&d, log.data, log.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_LOG_MESSAGE_BODY_IID)
      body = st_interned_text(&m->sequences, e->generation,
                              INTERNED(LOG_MESSAGE_BODY), f.value);
    else if (f.number == ST_FIELD_LOG_MESSAGE_SOURCE_LOCATION_IID)
      has_location = find_location(m, e->generation, f.value, false, &location);
    else if (f.number == ST_FIELD_LOG_MESSAGE_PRIO)
      priority = f.value & 0xFF;
  }
  st_arg_add_text(args, st_intern(&m->storage, "track_event.log_message"),
                  body);
  if (has_location)
    add_location(m, args, "track_event.log_message", location, ST_ARG_INT);
  if (priority)
    st_arg_add_int(args, st_intern(&m->storage, "track_event.priority"),
                   ST_ARG_INT, (int64_t)priority);
  add_log_row(m, e->ts, utid, priority, has_location ? log_tag(m, location) : 0,
              body);
}

static void add_correlation(struct st_importer* m, const struct st_event* e,
                            struct st_field f, struct st_arg_list* args) {
  st_string text = 0;
  if (f.number == FIELD(CORRELATION_ID_STR)) {
    text = text_of(m, f, false);
  } else if (f.number == FIELD(CORRELATION_ID_STR_IID)) {
    text = st_interned_text(&m->sequences, e->generation,
                            INTERNED(CORRELATION_ID_STR), f.value);
  } else {
    char id[32] = "tp:#";
    char digits[24];
    size_t n = 0, size = 4;
    do
      digits[n++] = (char)('0' + f.value % 10);
    while (f.value /= 10);
    while (n)
      id[size++] = digits[--n];
    text = st_string_add(&m->storage.strings, id, size);
  }
  if (text)
    st_arg_add_text(args, st_intern(&m->storage, "correlation_id"), text);
}

/* Adds the arguments that come before all others, whatever the order of the
 * fields in the message. */
static void add_detail(struct st_importer* m, const struct st_event* e,
                       uint32_t utid, struct st_field f,
                       struct st_arg_list* args) {
  switch (f.number) {
    case FIELD(SOURCE_LOCATION_IID):
      add_location_iid(m, e->generation, f.value, "source", args);
      break;
    case FIELD(TASK_EXECUTION):
      if (f.data)
        add_task(m, e->generation, f, args);
      break;
    case FIELD(CHROME_HISTOGRAM_SAMPLE):
      add_histogram(m, e->generation, f, args);
      break;
    case FIELD(CHROME_ACTIVE_PROCESSES):
      add_active_processes(m, f);
      break;
    case FIELD(LOG_MESSAGE):
      if (f.data)
        add_log(m, e, utid, f, args);
      break;
    case FIELD(CORRELATION_ID):
    case FIELD(CORRELATION_ID_STR):
    case FIELD(CORRELATION_ID_STR_IID):
      add_correlation(m, e, f, args);
      break;
    default:
      break;
  }
}

static void add_details(struct st_importer* m, const struct st_event* e,
                        uint32_t utid, struct st_arg_list* args) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f))
    add_detail(m, e, utid, f, args);
}

static void add_annotations(struct st_importer* m, const struct st_event* e,
                            struct st_arg_list* args) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FIELD(DEBUG_ANNOTATIONS) && f.data)
      st_parse_annotation(m, e->generation, f, args);
  }
}

void st_parse_event_args(struct st_importer* m, const struct st_event* e,
                         uint32_t parts, uint32_t utid,
                         const int64_t* source_id, struct st_arg_list* args) {
  if (parts & ST_PART_DETAILS)
    add_details(m, e, utid, args);
  if (source_id)
    st_arg_add_int(args, st_intern(&m->storage, "legacy_trace_source_id"),
                   ST_ARG_INT, *source_id);
  if (parts & ST_PART_TYPED || !e->size)
    st_parse_event_fields(m, e, args);
  if (parts & ST_PART_ANNOTATIONS)
    add_annotations(m, e, args);
}
