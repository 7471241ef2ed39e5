#include "ftrace_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"

enum { MAX_TEXT = 255 };

static void add_args(struct st_importer* m, struct st_arg_list* list,
                     const struct st_kernel_arg* args, uint32_t count) {
  for (uint32_t i = 0; list && i < count; i++) {
    st_string key = st_intern(&m->storage, args[i].key);
    if (args[i].type == ST_ARG_STRING)
      st_arg_add_text(list, key, (st_string)args[i].value);
    else
      st_arg_add_int(list, key, args[i].type, args[i].value);
  }
}

void st_kernel_begin(struct st_importer* m, int64_t ts, int64_t dur,
                     uint32_t track, const char* category, st_string name,
                     const struct st_kernel_arg* args, uint32_t count) {
  struct st_arg_list* list;
  st_slice_begin(&m->slices, track, ts, dur,
                 category ? st_intern(&m->storage, category) : 0, name, &list);
  add_args(m, list, args, count);
}

void st_kernel_end(struct st_importer* m, int64_t ts, uint32_t track,
                   const char* category, st_string name,
                   const struct st_kernel_arg* args, uint32_t count) {
  struct st_arg_list* list;
  uint32_t row = st_slice_end(&m->slices, track, ts,
                              category ? st_intern(&m->storage, category) : 0,
                              name, &list, (struct st_thread_counts){0});
  if (row == ST_NO_ROW)
    return;
  add_args(m, list, args, count);
  st_slice_closed(&m->slices, track, row);
}

void st_kernel_counter(struct st_importer* m, int64_t ts,
                       const struct st_fixed_track* track, double value,
                       const struct st_kernel_arg* args, uint32_t count) {
  struct st_arg_list* list = &m->tracks.arguments;
  uint32_t row =
      st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, track), value);
  if (!count)
    return;
  add_args(m, list, args, count);
  st_table_set(&m->storage.tables[ST_COUNTER_TABLE], row, ST_COUNTER_arg_set_id,
               st_row(st_arg_sets_add(&m->arg_sets, &m->storage, list)));
  st_arg_list_clear(list);
}

uint32_t st_kernel_thread_track(struct st_importer* m, uint32_t tid) {
  return st_tracks_thread_row(&m->tracks, st_thread_seen(&m->processes, tid));
}

st_string st_kernel_text(struct st_importer* m, const char* format, ...) {
  char text[MAX_TEXT + 1];
  va_list values;
  va_start(values, format);
  int size = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  size = size < 0 ? 0 : size < MAX_TEXT ? size : MAX_TEXT;
  return st_string_add(&m->storage.strings, text, (size_t)size);
}

st_string st_kernel_name(struct st_importer* m, struct st_field f,
                         const char* prefix, const char* suffix) {
  int size = (int)(f.size < MAX_TEXT ? f.size : MAX_TEXT);
  return st_kernel_text(m, "%s%.*s%s", prefix, size,
                        f.data ? (const char*)f.data : "", suffix);
}

bool st_parse_kernel_event(struct st_importer* m,
                           const struct st_kernel_event* e) {
  struct st_field f[ST_KERNEL_FIELDS];
  st_message_read(e->message, f, ST_KERNEL_FIELDS);
  return st_parse_memory_event(m, e, f) || st_parse_network_event(m, e, f) ||
         st_parse_call_event(m, e, f) || st_parse_counter_event(m, e, f);
}

void st_kernel_kinds_free(struct st_kernel_kinds* k) {
  free(k->counters.data);
  st_map_free(&k->mm_threads);
  st_map_free(&k->in_write);
  st_map_free(&k->devices[0]);
  st_map_free(&k->devices[1]);
  free(k->bytes.data);
  st_map_free(&k->tcp_streams);
  st_map_free(&k->migrations);
  free(k->migration_counts.data);
}
