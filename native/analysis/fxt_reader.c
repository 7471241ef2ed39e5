/* Reads the records of an FXT trace, and queues the events. */
#include <stdlib.h>
#include <string.h>

#include "importer.h"

enum metadata { PROVIDER_INFO = 1, PROVIDER_SECTION, PROVIDER_EVENT };
enum {
  PERFETTO_BLOB = 3,
  PROCESS_OBJECT = 1,
  THREAD_OBJECT = 2,
  LEGACY_SWITCH = 0,
  SWITCH = 1,
  WAKE = 2,
  BUFFER_FILLED = 0,
  NS_PER_SECOND = 1000000000,
};

void st_fxt_error(struct st_importer* m, const char* name) {
  st_increment_stat(m, name, ST_NO_INDEX, "error", "analysis", 1);
}

static bool read_error(struct st_importer* m) {
  st_fxt_error(m, "fuchsia_record_read_error");
  return false;
}

/* Adds a provider, whose records follow.  An older one with this id loses its
 * tables. */
static void add_provider(struct st_importer* m, uint32_t id) {
  struct st_fxt* f = &m->fxt;
  *ST_PUSH(&f->rates) = NS_PER_SECOND;
  *st_map_at(&f->providers, id) = f->provider = f->rates.size;
}

static uint64_t table_key(const struct st_fxt* f, uint32_t index) {
  return (uint64_t)f->provider << 16 | index;
}

/* Reads a string.  Returns false if the reference is invalid, or if the record
 * ends before. */
static bool read_string(struct st_importer* m, struct st_fxt_words* w,
                        uint32_t reference, st_string* string) {
  if (reference && !(reference & ST_FXT_INLINE)) {
    *string = st_map_get(&m->fxt.strings, table_key(&m->fxt, reference));
    if (!*string)
      st_fxt_error(m, "fuchsia_invalid_string_ref");
    return *string != 0;
  }
  size_t size = reference & (ST_FXT_INLINE - 1);
  const uint8_t* data;
  if (!st_fxt_bytes(w, size, &data))
    return read_error(m);
  *string = st_string_add(&m->storage.strings, data, size);
  return true;
}

static bool read_thread(struct st_importer* m, struct st_fxt_words* w,
                        uint32_t reference, struct st_fxt_thread* thread) {
  if (reference) {
    uint32_t number =
        st_map_get(&m->fxt.thread_numbers, table_key(&m->fxt, reference));
    *thread =
        number ? m->fxt.threads.data[number - 1] : (struct st_fxt_thread){0, 0};
    return true;
  }
  return (st_fxt_word(w, &thread->pid) && st_fxt_word(w, &thread->tid)) ||
         read_error(m);
}

static bool read_time(struct st_importer* m, struct st_fxt_words* w,
                      int64_t* ts) {
  uint64_t ticks;
  if (!st_fxt_word(w, &ticks))
    return read_error(m);
  *ts = st_fxt_ns(ticks, m->fxt.rates.data[m->fxt.provider - 1]);
  if (*ts < 0)
    st_fxt_error(m, "fuchsia_timestamp_overflow");
  return *ts >= 0;
}

static bool read_value(struct st_importer* m, struct st_fxt_words* w,
                       uint64_t header, struct st_fxt_argument* a) {
  st_string text;
  switch (a->type) {
    case ST_FXT_INT32:
    case ST_FXT_UINT32:
    case ST_FXT_BOOL:
      a->value = header >> 32;
      return true;
    case ST_FXT_INT64:
    case ST_FXT_UINT64:
    case ST_FXT_DOUBLE:
    case ST_FXT_POINTER:
    case ST_FXT_KOID:
      return st_fxt_word(w, &a->value) || read_error(m);
    case ST_FXT_TEXT:
      if (!read_string(m, w, st_fxt_bits(header, 32, 47), &text))
        return false;
      a->value = text;
      return true;
    default:
      return true;
  }
}

/* Reads arguments.  Each begins where the size of the one before it ends. */
static bool read_arguments(struct st_importer* m, struct st_fxt_words* w,
                           uint32_t count, struct st_fxt_event* e) {
  for (uint32_t i = 0; i < count; i++) {
    size_t start = w->at;
    uint64_t header;
    if (!st_fxt_word(w, &header))
      return read_error(m);
    struct st_fxt_argument a = {.type = st_fxt_bits(header, 0, 3)};
    if (!read_string(m, w, st_fxt_bits(header, 16, 31), &a.name) ||
        !read_value(m, w, header, &a))
      return false;
    e->arguments[e->argument_count++] = a;
    w->at = start + st_fxt_bits(header, 4, 15);
  }
  return true;
}

static void queue(struct st_importer* m, int64_t ts,
                  const struct st_fxt_event* e) {
  size_t unused =
      (ST_FXT_MAX_ARGUMENTS - e->argument_count) * sizeof *e->arguments;
  st_sorter_push(&m->sorter, ST_QUEUE_FXT, 0,
                 (struct st_event){.ts = ts,
                                   .data = (const uint8_t*)e,
                                   .size = (uint32_t)(sizeof *e - unused)});
}

static bool has_id(enum st_fxt_kind kind) {
  return kind == ST_FXT_COUNTER || kind >= ST_FXT_ASYNC_BEGIN;
}

static void read_event(struct st_importer* m, struct st_fxt_words* w,
                       uint64_t header) {
  struct st_fxt_event e = {.kind = st_fxt_bits(header, 16, 19)};
  int64_t ts;
  if (!read_time(m, w, &ts) ||
      !read_thread(m, w, st_fxt_bits(header, 24, 31), &e.thread) ||
      !read_string(m, w, st_fxt_bits(header, 32, 47), &e.category) ||
      !read_string(m, w, st_fxt_bits(header, 48, 63), &e.name) ||
      !read_arguments(m, w, st_fxt_bits(header, 20, 23), &e))
    return;
  if (e.kind > ST_FXT_FLOW_END) {
    m->counts.unread_events++;
    return;
  }
  if (has_id(e.kind) && !st_fxt_word(w, &e.id)) {
    read_error(m);
    return;
  }
  if (e.kind == ST_FXT_COMPLETE && !read_time(m, w, &e.end))
    return;
  queue(m, ts, &e);
}

static void read_metadata(struct st_importer* m, uint64_t header) {
  uint32_t id = st_fxt_bits(header, 20, 51);
  switch (st_fxt_bits(header, 16, 19)) {
    case PROVIDER_INFO:
      add_provider(m, id);
      break;
    case PROVIDER_SECTION:
      m->fxt.provider = st_map_get(&m->fxt.providers, id);
      break;
    case PROVIDER_EVENT:
      if (st_fxt_bits(header, 52, 55) == BUFFER_FILLED)
        m->fxt.full_buffers++;
      break;
    default:
      break;
  }
}

static void add_string(struct st_importer* m, struct st_fxt_words* w,
                       uint64_t header) {
  uint32_t index = st_fxt_bits(header, 16, 30);
  st_string string;
  if (index &&
      read_string(m, w, ST_FXT_INLINE | st_fxt_bits(header, 32, 46), &string))
    *st_map_at(&m->fxt.strings, table_key(&m->fxt, index)) = string;
}

static void add_thread(struct st_importer* m, struct st_fxt_words* w,
                       uint64_t header) {
  uint32_t index = st_fxt_bits(header, 16, 23);
  struct st_fxt_thread thread;
  if (!index || !read_thread(m, w, 0, &thread))
    return;
  *ST_PUSH(&m->fxt.threads) = thread;
  *st_map_at(&m->fxt.thread_numbers, table_key(&m->fxt, index)) =
      m->fxt.threads.size;
}

/* Reads the packets in a blob. */
static void read_blob(struct st_importer* m, struct st_fxt_words* w,
                      uint64_t header) {
  uint32_t name = st_fxt_bits(header, 16, 31);
  size_t size = st_fxt_bits(header, 32, 46);
  const uint8_t* data;
  if (st_fxt_bits(header, 48, 55) != PERFETTO_BLOB) {
    m->counts.unread_packets++;
    return;
  }
  if (name & ST_FXT_INLINE &&
      !st_fxt_bytes(w, name & (ST_FXT_INLINE - 1), &data)) {
    read_error(m);
    return;
  }
  if (st_fxt_bytes(w, size, &data))
    st_read_packets(m, data, size);
  else
    read_error(m);
}

/* Reads the name of a thread, and the process in its arguments. */
static void read_thread_object(struct st_importer* m, struct st_fxt_words* w,
                               uint64_t header, uint64_t tid, st_string name) {
  struct st_fxt_event e = {.argument_count = 0};
  uint64_t pid = 0;
  if (!read_arguments(m, w, st_fxt_bits(header, 40, 43), &e))
    return;
  for (uint32_t i = 0; i < e.argument_count; i++) {
    if (e.arguments[i].name != st_intern(&m->storage, "process"))
      continue;
    if (e.arguments[i].type != ST_FXT_KOID) {
      st_fxt_error(m, "fuchsia_invalid_event_arg_type");
      return;
    }
    pid = e.arguments[i].value;
  }
  st_fxt_schedule_of(m, tid)->pid = pid;
  uint32_t utid = st_thread_get(&m->processes, (uint32_t)tid, (uint32_t)pid);
  st_table_set(&m->storage.tables[ST_THREAD_TABLE], utid, ST_THREAD_name,
               st_text(name));
}

static void read_kernel_object(struct st_importer* m, struct st_fxt_words* w,
                               uint64_t header) {
  uint32_t type = st_fxt_bits(header, 16, 23);
  uint64_t id;
  st_string name;
  if (!st_fxt_word(w, &id)) {
    read_error(m);
    return;
  }
  if (!read_string(m, w, st_fxt_bits(header, 24, 39), &name))
    return;
  if (type == PROCESS_OBJECT)
    st_process_set_name(
        &m->processes, st_process_get(&m->processes, (uint32_t)id), name, true);
  else if (type == THREAD_OBJECT)
    read_thread_object(m, w, header, id, name);
}

/* Reads a switch in the older form, which names processes and priorities. */
static void read_legacy_switch(struct st_importer* m, struct st_fxt_words* w,
                               uint64_t header) {
  struct st_fxt_event e = {
      .kind = ST_FXT_SWITCH,
      .is_legacy = true,
      .cpu = st_fxt_bits(header, 16, 23),
      .state = st_fxt_bits(header, 24, 27),
      .weight = (int32_t)st_fxt_bits(header, 44, 51),
      .next_weight = (int32_t)st_fxt_bits(header, 52, 59),
  };
  int64_t ts;
  if (read_time(m, w, &ts) &&
      read_thread(m, w, st_fxt_bits(header, 28, 35), &e.thread) &&
      read_thread(m, w, st_fxt_bits(header, 36, 43), &e.next))
    queue(m, ts, &e);
}

/* Sets a weight to the value of the argument with this name.  Returns false if
 * the argument has another type. */
static bool find_weight(struct st_importer* m, const struct st_fxt_event* e,
                        const char* name, int32_t* weight) {
  st_string key = st_intern(&m->storage, name);
  for (uint32_t i = 0; i < e->argument_count; i++) {
    if (e->arguments[i].name != key)
      continue;
    if (e->arguments[i].type != ST_FXT_INT32) {
      st_fxt_error(m, "fuchsia_invalid_event_arg_type");
      return false;
    }
    *weight = (int32_t)(uint32_t)e->arguments[i].value;
  }
  return true;
}

static void read_switch(struct st_importer* m, struct st_fxt_words* w,
                        uint64_t header, bool is_wakeup) {
  struct st_fxt_event e = {.kind = is_wakeup ? ST_FXT_WAKE : ST_FXT_SWITCH,
                           .cpu = st_fxt_bits(header, 20, 35),
                           .state = st_fxt_bits(header, 36, 39)};
  int64_t ts;
  if (!read_time(m, w, &ts))
    return;
  if (!st_fxt_word(w, &e.thread.tid) ||
      (!is_wakeup && !st_fxt_word(w, &e.next.tid))) {
    read_error(m);
    return;
  }
  if (!read_arguments(m, w, st_fxt_bits(header, 16, 19), &e) ||
      !find_weight(m, &e, is_wakeup ? "weight" : "outgoing_weight",
                   &e.weight) ||
      (!is_wakeup && !find_weight(m, &e, "incoming_weight", &e.next_weight)))
    return;
  e.argument_count = 0;
  queue(m, ts, &e);
}

static void read_scheduling(struct st_importer* m, struct st_fxt_words* w,
                            uint64_t header) {
  uint32_t kind = st_fxt_bits(header, 60, 63);
  if (kind == LEGACY_SWITCH)
    read_legacy_switch(m, w, header);
  else if (kind == SWITCH || kind == WAKE)
    read_switch(m, w, header, kind == WAKE);
  else
    m->counts.unread_events++;
}

static void read_record(void* context, const uint8_t* data, size_t size) {
  struct st_importer* m = context;
  struct st_fxt_words w = {data, size, 0};
  uint64_t header;
  st_fxt_word(&w, &header);
  uint32_t type = st_fxt_bits(header, 0, 3);
  if (type != ST_FXT_METADATA && !m->fxt.provider) {
    st_fxt_error(m, "fuchsia_invalid_event");
    return;
  }
  switch (type) {
    case ST_FXT_METADATA:
      read_metadata(m, header);
      break;
    case ST_FXT_INITIALIZATION:
      if (!st_fxt_word(&w, &m->fxt.rates.data[m->fxt.provider - 1]))
        read_error(m);
      break;
    case ST_FXT_STRING:
      add_string(m, &w, header);
      break;
    case ST_FXT_THREAD:
      add_thread(m, &w, header);
      break;
    case ST_FXT_EVENT:
      read_event(m, &w, header);
      break;
    case ST_FXT_BLOB:
      read_blob(m, &w, header);
      break;
    case ST_FXT_KERNEL_OBJECT:
      read_kernel_object(m, &w, header);
      break;
    case ST_FXT_SCHEDULING:
      read_scheduling(m, &w, header);
      break;
    default:
      m->counts.unread_packets++;
  }
}

void st_read_fxt(struct st_importer* m, const void* data, size_t size) {
  if (!m->fxt.rates.size)
    add_provider(m, 0);
  st_fxt_feed(&m->fxt.reader, data, size, read_record, m);
}

void st_end_fxt(struct st_importer* m) {
  struct st_fxt* f = &m->fxt;
  m->is_cut_off |= f->reader.kept.size || f->reader.over;
  m->counts.truncated_bytes += f->reader.void_bytes + f->reader.kept.size;
  m->counts.unread_packets += f->reader.large;
  st_fxt_reader_free(&f->reader);
  st_map_free(&f->providers);
  st_map_free(&f->strings);
  st_map_free(&f->thread_numbers);
  f->rates.size = f->threads.size = f->provider = 0;
}

void st_fxt_free(struct st_fxt* f) {
  st_fxt_reader_free(&f->reader);
  st_map_free(&f->providers);
  st_map_free(&f->strings);
  st_map_free(&f->thread_numbers);
  st_map_free(&f->schedule_numbers);
  free(f->rates.data);
  free(f->threads.data);
  free(f->schedules.data);
}
