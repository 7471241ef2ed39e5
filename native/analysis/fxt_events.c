/* Parses the queued events of an FXT trace, in the order of time. */
#include <stdio.h>
#include <string.h>

#include "importer.h"

static void add_argument(struct st_importer* m, struct st_arg_list* args,
                         const struct st_fxt_argument* a) {
  int64_t number = (int64_t)a->value;
  struct st_arg arg = {.flat_key = a->name, .key = a->name, .type = ST_ARG_INT};
  switch (a->type) {
    case ST_FXT_INT32:
      arg.i = (int32_t)(uint32_t)a->value;
      break;
    case ST_FXT_UINT32:
    case ST_FXT_INT64:
    case ST_FXT_UINT64:
    case ST_FXT_KOID:
      arg.i = number;
      break;
    case ST_FXT_DOUBLE:
      arg.type = ST_ARG_REAL;
      memcpy(&arg.f, &a->value, sizeof arg.f);
      break;
    case ST_FXT_TEXT:
      arg.type = ST_ARG_STRING;
      arg.text = (st_string)a->value;
      break;
    case ST_FXT_POINTER:
      arg.type = ST_ARG_POINTER;
      arg.i = number;
      break;
    case ST_FXT_BOOL:
      arg.type = ST_ARG_BOOL;
      arg.i = a->value != 0;
      break;
    default:
      arg.type = ST_ARG_STRING;
      arg.text =
          st_intern(&m->storage, a->type == ST_FXT_NULL ? "null" : "unknown");
  }
  st_arg_list_add(args, arg);
}

static void add_arguments(struct st_importer* m, struct st_arg_list* args,
                          const struct st_fxt_event* e) {
  for (uint32_t i = 0; args && i < e->argument_count; i++)
    add_argument(m, args, &e->arguments[i]);
}

static void begin(struct st_importer* m, int64_t ts, uint32_t track,
                  int64_t dur, const struct st_fxt_event* e) {
  struct st_arg_list* args;
  uint32_t row =
      st_slice_begin(&m->slices, track, ts, dur, e->category, e->name, &args);
  if (row != ST_NO_ROW)
    add_arguments(m, args, e);
}

/* Ends a slice; `category` and `name` are 0 for the innermost one. */
static void end(struct st_importer* m, int64_t ts, uint32_t track,
                st_string category, st_string name,
                const struct st_fxt_event* e) {
  struct st_arg_list* args;
  uint32_t row = st_slice_end(&m->slices, track, ts, category, name, &args,
                              (struct st_thread_counts){0});
  if (row == ST_NO_ROW)
    return;
  add_arguments(m, args, e);
  st_slice_closed(&m->slices, track, row);
}

static uint32_t thread_track(struct st_importer* m,
                             const struct st_fxt_event* e) {
  uint32_t utid = st_thread_get(&m->processes, (uint32_t)e->thread.tid,
                                (uint32_t)e->thread.pid);
  return st_tracks_thread_row(&m->tracks, utid);
}

static uint32_t process_of(struct st_importer* m,
                           const struct st_fxt_event* e) {
  return st_process_get(&m->processes, (uint32_t)e->thread.pid);
}

/* Returns false if the argument is no number. */
static bool number_of(const struct st_fxt_argument* a, double* number) {
  switch (a->type) {
    case ST_FXT_INT32:
      *number = (int32_t)(uint32_t)a->value;
      return true;
    case ST_FXT_INT64:
      *number = (double)(int64_t)a->value;
      return true;
    case ST_FXT_UINT32:
    case ST_FXT_UINT64:
      *number = (double)a->value;
      return true;
    case ST_FXT_DOUBLE:
      memcpy(number, &a->value, sizeof *number);
      return true;
    default:
      return false;
  }
}

/* Returns "event:argument:id". */
static st_string counter_name(struct st_importer* m,
                              const struct st_fxt_event* e,
                              st_string argument) {
  size_t a, b;
  char id[24];
  int n = snprintf(id, sizeof id, ":%llu", (unsigned long long)e->id);
  st_string_text(&m->storage.strings, e->name, &a);
  st_string_text(&m->storage.strings, argument, &b);
  char* name = st_bytes_take(&m->arena, a + b + 1 + (size_t)n);
  memcpy(name, st_string_text(&m->storage.strings, e->name, &a), a);
  name[a] = ':';
  memcpy(name + a + 1, st_string_text(&m->storage.strings, argument, &b), b);
  memcpy(name + a + 1 + b, id, (size_t)n);
  return st_string_add(&m->storage.strings, name, a + b + 1 + (size_t)n);
}

/* Adds a value for each argument: each is a counter of its own. */
static void parse_counters(struct st_importer* m, int64_t ts,
                           const struct st_fxt_event* e) {
  uint32_t upid = process_of(m, e);
  for (uint32_t i = 0; i < e->argument_count; i++) {
    double value;
    if (!number_of(&e->arguments[i], &value)) {
      st_fxt_error(m, "fuchsia_non_numeric_counters");
      continue;
    }
    st_string name = counter_name(m, e, e->arguments[i].name);
    struct st_fixed_track f = {
        .type = "fuchsia_counter",
        .name = name,
        .is_counter = true,
        .dimensions = {{"upid", .number = upid}, {"name", .text = name}}};
    st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f), value);
  }
}

static void parse_async(struct st_importer* m, int64_t ts,
                        const struct st_fxt_event* e) {
  struct st_async_slice slice = {
      .id = e->id, .upid = process_of(m, e), .name = e->name};
  enum st_use use = e->kind == ST_FXT_ASYNC_BEGIN ? ST_USE_BEGIN
                    : e->kind == ST_FXT_ASYNC_END ? ST_USE_END
                                                  : ST_USE_INSTANT;
  uint32_t track =
      st_async_track_row(&m->async_tracks, &m->tracks, &slice, use);
  if (e->kind == ST_FXT_ASYNC_END)
    end(m, ts, track, e->category, e->name, e);
  else
    begin(m, ts, track, e->kind == ST_FXT_ASYNC_BEGIN ? -1 : 0, e);
}

static void parse_flow(struct st_importer* m, const struct st_fxt_event* e) {
  uint32_t slice = st_slice_top(&m->slices, thread_track(m, e));
  if (e->kind == ST_FXT_FLOW_BEGIN)
    st_flow_begin_on_track(&m->flows, e->id, slice);
  else if (e->kind == ST_FXT_FLOW_STEP)
    st_flow_step_on_track(&m->flows, e->id, slice);
  else
    st_flow_close_on_track(&m->flows, e->id, slice);
}

static void parse_complete(struct st_importer* m, int64_t ts,
                           const struct st_fxt_event* e) {
  if (e->end < ts)
    st_fxt_error(m, "fuchsia_timestamp_overflow");
  else
    begin(m, ts, thread_track(m, e), e->end - ts, e);
}

void st_parse_fxt(struct st_importer* m, const struct st_event* event) {
  struct st_fxt_event e;
  int64_t ts = event->ts;
  memcpy(&e, event->data, event->size);
  m->counts.track_events++;
  switch (e.kind) {
    case ST_FXT_INSTANT:
      begin(m, ts, thread_track(m, &e), 0, &e);
      break;
    case ST_FXT_COUNTER:
      parse_counters(m, ts, &e);
      break;
    case ST_FXT_BEGIN:
      begin(m, ts, thread_track(m, &e), -1, &e);
      break;
    case ST_FXT_END:
      end(m, ts, thread_track(m, &e), 0, 0, &e);
      break;
    case ST_FXT_COMPLETE:
      parse_complete(m, ts, &e);
      break;
    case ST_FXT_ASYNC_BEGIN:
    case ST_FXT_ASYNC_INSTANT:
    case ST_FXT_ASYNC_END:
      parse_async(m, ts, &e);
      break;
    case ST_FXT_FLOW_BEGIN:
    case ST_FXT_FLOW_STEP:
    case ST_FXT_FLOW_END:
      parse_flow(m, &e);
      break;
    default:
      st_fxt_schedule(m, ts, &e);
  }
}
