/* Parses texts that programs write into the kernel's trace, in the form of
 * Android's atrace:
 *
 *   B|pid|name                begins a slice on the thread
 *   E|pid                     ends the innermost slice of the thread
 *   I|pid|name                adds an instant on the thread
 *   C|pid|name|value          sets a counter of the process
 *   S|pid|name|cookie         begins an asynchronous slice of the process
 *   F|pid|name|cookie         ends it
 *   G|pid|track|name|cookie   begins an asynchronous slice on a named track
 *   H|pid|track|cookie        ends it
 *   N|pid|track|name          adds an instant on a named track
 */
#include <string.h>

#include "importer.h"

struct text {
  const char* data;
  size_t size;
};

static const char kScreenState[] = "ScreenState";
static const char kDeviceState[] = "DeviceStateChanged";
static const char kBattery[] = "battery_stats.";

static bool is_text(struct text text, const char* expected) {
  return text.size == strlen(expected) &&
         memcmp(text.data, expected, text.size) == 0;
}

struct point {
  char phase;
  int64_t pid, value;
  bool has_pid;
  struct text name, track;
};

/* Removes the next field, up to `|`, from the text, and returns it. */
static struct text next_field(struct text* rest) {
  struct text field = {rest->data, 0};
  while (field.size < rest->size && rest->data[field.size] != '|' &&
         rest->data[field.size])
    field.size++;
  size_t used = field.size < rest->size ? field.size + 1 : field.size;
  rest->data += used;
  rest->size -= used;
  return field;
}

/* Reads a decimal number.  Returns false if the field contains anything else,
 * or if the number is too large. */
static bool read_number(struct text field, int64_t* value) {
  bool is_negative = field.size && *field.data == '-';
  uint64_t number = 0;
  for (size_t i = is_negative; i < field.size; i++) {
    char c = field.data[i];
    if (c < '0' || c > '9' || number > (INT64_MAX - 9) / 10)
      return false;
    number = number * 10 + (uint64_t)(c - '0');
  }
  *value = is_negative ? -(int64_t)number : (int64_t)number;
  return field.size > is_negative;
}

/* Reads the fields after the pid.  Returns false if one is missing or
 * invalid. */
static bool read_fields(struct point* p, struct text rest) {
  struct text last;
  switch (p->phase) {
    case 'E':
      return true;
    case 'B':
      p->name = rest.size ? rest : (struct text){"[empty slice name]", 18};
      return p->has_pid;
    case 'I':
      p->name = next_field(&rest);
      return p->has_pid && p->name.size;
    case 'S':
    case 'F':
    case 'C':
      p->name = next_field(&rest);
      return p->has_pid && p->name.size &&
             read_number(next_field(&rest), &p->value);
    case 'N':
    case 'G':
      p->track = next_field(&rest);
      p->name = next_field(&rest);
      return p->has_pid && p->track.size && p->name.size &&
             (p->phase == 'N' || read_number(next_field(&rest), &p->value));
    case 'H':
      p->track = next_field(&rest);
      last = next_field(&rest);
      if (rest.size && *rest.data != '|')
        last = next_field(&rest);
      return p->has_pid && p->track.size && read_number(last, &p->value);
    default:
      return false;
  }
}

static bool read_point(struct point* p, struct text rest) {
  while (rest.size &&
         (rest.data[rest.size - 1] == '\n' || !rest.data[rest.size - 1]))
    rest.size--;
  struct text phase = next_field(&rest);
  if (!phase.size)
    return false;
  p->phase = *phase.data;
  p->has_pid = read_number(next_field(&rest), &p->pid) && p->pid >= 0 &&
               p->pid <= UINT32_MAX;
  if (!p->has_pid)
    p->pid = 0;
  return read_fields(p, rest);
}

static st_string intern(struct st_importer* m, struct text text) {
  return st_string_add(&m->storage.strings, text.data, text.size);
}

/* Returns the row of the thread's track.  If the pid is 0, the process of the
 * thread is unknown. */
static uint32_t thread_track(struct st_importer* m, uint32_t tid, int64_t pid) {
  uint32_t utid = pid ? st_thread_get(&m->processes, tid, pid)
                      : st_thread_seen(&m->processes, tid);
  return st_tracks_thread_row(&m->tracks, utid);
}

static struct st_fixed_track track_of(struct st_importer* m, const char* type,
                                      int64_t pid, struct text name) {
  st_string text = intern(m, name);
  return (struct st_fixed_track){
      .type = type,
      .name = text,
      .dimensions = {{"upid", .number = st_process_get(&m->processes, pid)},
                     {"name", .text = text}}};
}

/* Adds the thread's utid to the arguments as `name`, unless they have it. */
static void add_thread(struct st_importer* m, struct st_arg_list* args,
                       const char* name, uint32_t tid) {
  st_string key = st_intern(&m->storage, name);
  uint32_t utid = st_thread_seen(&m->processes, tid);
  for (uint32_t i = 0; args && i < args->args.size; i++) {
    if (args->args.data[i].key == key)
      return;
  }
  if (args)
    st_arg_add_int(args, key, ST_ARG_UINT, utid);
}

static void end_slice(struct st_importer* m, int64_t ts, uint32_t track,
                      const char* key, uint32_t tid) {
  struct st_arg_list* args;
  uint32_t row = st_slice_end(&m->slices, track, ts, 0, 0, &args,
                              (struct st_thread_counts){0});
  if (row == ST_NO_ROW)
    return;
  if (key)
    add_thread(m, args, key, tid);
  st_slice_closed(&m->slices, track, row);
}

static void parse_async(struct st_importer* m, int64_t ts,
                        const struct point* p) {
  struct st_arg_list* args;
  struct st_fixed_track f = track_of(m, "atrace_async_slice", p->pid, p->name);
  uint32_t track =
      st_tracks_flat_row(&m->tracks, &f, (uint64_t)p->value, p->phase == 'S');
  if (p->phase == 'F') {
    end_slice(m, ts, track, NULL, 0);
    return;
  }
  st_slice_begin_flat(&m->slices, track, ts, f.name, &args);
  if (args)
    st_arg_add_int(args, st_intern(&m->storage, "cookie"), ST_ARG_INT,
                   p->value);
}

static void parse_on_track(struct st_importer* m, int64_t ts, uint32_t tid,
                           const struct point* p) {
  struct st_arg_list* args;
  struct st_fixed_track f =
      track_of(m, "atrace_async_slice_for_track", p->pid, p->track);
  if (p->phase == 'H') {
    end_slice(
        m, ts,
        st_tracks_async_row(&m->tracks, &f, (uint64_t)p->value, ST_USE_END),
        "end_utid", tid);
    return;
  }
  if (p->phase == 'N' && is_text(p->track, kDeviceState)) {
    struct st_fixed_track state = {.type = "android_device_state",
                                   .name = f.name};
    st_slice_begin(&m->slices, st_tracks_fixed_row(&m->tracks, &state), ts, 0,
                   0, intern(m, p->name), &args);
    return;
  }
  bool is_instant = p->phase == 'N';
  uint32_t track = is_instant
                       ? st_tracks_instant_row(&m->tracks, &f)
                       : st_tracks_async_row(&m->tracks, &f, (uint64_t)p->value,
                                             ST_USE_BEGIN);
  st_slice_begin(&m->slices, track, ts, is_instant ? 0 : -1, 0,
                 intern(m, p->name), &args);
  add_thread(m, args, "utid", tid);
}

void st_set_screen_state(struct st_importer* m, int64_t ts, double value) {
  struct st_fixed_track f = {.type = "screen_state",
                             .name = st_intern(&m->storage, kScreenState),
                             .is_counter = true};
  st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f), value);
}

/* Android's texts about the screen and the battery are no counters of the
 * process that wrote them.  Returns whether this is one. */
static bool parse_global_counter(struct st_importer* m, int64_t ts,
                                 const struct point* p) {
  if (is_text(p->name, kScreenState)) {
    st_set_screen_state(m, ts, (double)p->value);
    return true;
  }
  size_t prefix = strlen(kBattery);
  if (p->name.size < prefix || memcmp(p->name.data, kBattery, prefix) != 0)
    return false;
  st_string name = intern(m, p->name);
  struct st_fixed_track f = {.type = "battery_stats",
                             .name = name,
                             .is_counter = true,
                             .dimensions = {{"counter_key", .text = name}}};
  st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f), (double)p->value);
  return true;
}

/* Adds an instant to a process that has been killed to free memory. */
static void add_kill(struct st_importer* m, int64_t ts, uint32_t pid) {
  struct st_fixed_track f = {
      .type = "android_lmk",
      .name = st_intern(&m->storage, "LMK"),
      .dimensions = {{"upid", .number = st_process_get(&m->processes, pid)}}};
  struct st_arg_list* args;
  st_slice_begin(&m->slices, st_tracks_fixed_row(&m->tracks, &f), ts, 0, 0,
                 st_intern(&m->storage, "mem.lmk"), &args);
}

static void parse_counter(struct st_importer* m, int64_t ts, uint32_t tid,
                          const struct point* p) {
  if (is_text(p->name, "kill_one_process") && (uint32_t)p->value)
    add_kill(m, ts, (uint32_t)p->value);
  if (parse_global_counter(m, ts, p))
    return;
  struct st_fixed_track f = track_of(m, "atrace_counter", p->pid, p->name);
  f.is_counter = true;
  uint32_t utid = st_thread_find(&m->processes, tid);
  uint32_t row = st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f),
                                (double)p->value);
  if (utid == ST_NO_ROW)
    return;
  struct st_arg_list args = {0};
  st_arg_add_int(&args, st_intern(&m->storage, "utid"), ST_ARG_UINT, utid);
  st_table_set(&m->storage.tables[ST_COUNTER_TABLE], row, ST_COUNTER_arg_set_id,
               st_row(st_arg_sets_add(&m->arg_sets, &m->storage, &args)));
  st_arg_list_free(&args);
}

static void parse_on_thread(struct st_importer* m, int64_t ts, uint32_t tid,
                            const struct point* p) {
  struct st_arg_list* args;
  if (p->phase != 'E') {
    st_string name = intern(m, p->name);
    st_slice_begin(&m->slices, thread_track(m, tid, p->pid), ts,
                   p->phase == 'B' ? -1 : 0, 0, name, &args);
  } else if (p->pid || st_thread_find(&m->processes, tid) != ST_NO_ROW) {
    end_slice(m, ts, thread_track(m, tid, p->pid), NULL, 0);
  }
}

static void parse_point(struct st_importer* m, int64_t ts, uint32_t tid,
                        const struct point* p) {
  switch (p->phase) {
    case 'S':
    case 'F':
      parse_async(m, ts, p);
      break;
    case 'N':
    case 'G':
    case 'H':
      parse_on_track(m, ts, tid, p);
      break;
    case 'C':
      parse_counter(m, ts, tid, p);
      break;
    default:
      parse_on_thread(m, ts, tid, p);
  }
}

void st_parse_kernel_mark(struct st_importer* m, int64_t ts, uint32_t tid,
                          char phase, uint32_t pid, struct st_field name,
                          int64_t value) {
  struct point p = {.phase = phase,
                    .pid = pid,
                    .has_pid = true,
                    .value = value,
                    .name = {(const char*)name.data, name.size}};
  parse_point(m, ts, tid, &p);
}

void st_parse_atrace(struct st_importer* m, int64_t ts, uint32_t tid,
                     const uint8_t* text, size_t size) {
  static const char kSync[] = "trace_event_clock_sync:";
  struct point p = {0};
  if (!read_point(&p, (struct text){(const char*)text, size})) {
    bool is_sync =
        size >= sizeof kSync - 1 && memcmp(text, kSync, sizeof kSync - 1) == 0;
    m->ftrace.atrace_errors += !is_sync;
    return;
  }
  parse_point(m, ts, tid, &p);
}
