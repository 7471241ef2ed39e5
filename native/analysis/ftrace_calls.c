/* Parses kernel events that begin and end calls: system calls, functions, and
 * what drivers and kprobes mark in the form of Android's atrace. */
#include <string.h>

#include "core/fields.h"
#include "ftrace_events.h"
#include "importer.h"
#include "syscalls.h"

enum {
  TRACING_MARK_WRITE = 80,
  SYS_ENTER = 329,
  SYS_EXIT = 330,
  ZERO = 331,
  SDE_TRACING_MARK_WRITE = 333,
  DPU_TRACING_MARK_WRITE = 348,
  FUNCGRAPH_ENTRY = 437,
  FUNCGRAPH_EXIT = 438,
  SAMSUNG_TRACING_MARK_WRITE = 484,
  KPROBE_EVENT = 542,

  MAX_CALLS = 550,
  MAX_ARGUMENTS = 6,
  KPROBE_BEGIN = 1,
  KPROBE_END = 2,
  KPROBE_INSTANT = 3,
};

/* Returns the name of a system call: `sys_` and its number if it is unknown. */
static st_string call_name(struct st_importer* m, uint32_t number) {
  const char* name = st_call_name(m->machine->kinds.architecture, number);
  if (name)
    return st_intern(&m->storage, name);
  return st_kernel_text(m, "sys_%u", number);
}

static void enter_call(struct st_importer* m, const struct st_kernel_event* e,
                       st_string name) {
  static const char* const kKeys[MAX_ARGUMENTS] = {
      "args[0]", "args[1]", "args[2]", "args[3]", "args[4]", "args[5]"};
  struct st_arg_list* args;
  uint64_t value;
  struct st_integers it;
  uint32_t utid = st_thread_seen(&m->processes, e->pid);
  bool is_instant = name == st_intern(&m->storage, "sys_rt_sigreturn");
  st_slice_begin(&m->slices, st_tracks_thread_row(&m->tracks, utid), e->ts,
                 is_instant ? 0 : -1, 0, name, &args);
  st_integers_init(&it, e->message, 2);
  st_string key = st_intern(&m->storage, "args");
  for (uint32_t i = 0; args && i < MAX_ARGUMENTS; i++) {
    if (!st_integers_next(&it, &value))
      break;
    st_arg_list_add(args, (struct st_arg){key,
                                          st_intern(&m->storage, kKeys[i]),
                                          ST_ARG_UINT,
                                          {.i = (int64_t)value}});
  }
  if (name == st_intern(&m->storage, "sys_write"))
    *st_map_at(&m->machine->kinds.in_write, utid) = 1;
}

static void exit_call(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f, st_string name) {
  uint32_t utid = st_thread_seen(&m->processes, e->pid);
  if (name == st_intern(&m->storage, "sys_write")) {
    uint32_t* is_inside = st_map_at(&m->machine->kinds.in_write, utid);
    if (!*is_inside)
      return;
    *is_inside = 0;
  }
  struct st_kernel_arg result = {"ret", ST_ARG_INT, (int64_t)f[2].value};
  st_kernel_end(m, e->ts, st_tracks_thread_row(&m->tracks, utid), NULL, name,
                &result, f[2].number != 0);
}

void st_cut_write(struct st_importer* m, int64_t ts, uint32_t tid) {
  if (!m->machine->kinds.in_write.size)
    return;
  uint32_t utid = st_thread_find(&m->processes, tid);
  if (utid == ST_NO_ROW || !st_map_get(&m->machine->kinds.in_write, utid))
    return;
  *st_map_at(&m->machine->kinds.in_write, utid) = 0;
  m->machine->kinds.counts.cut_writes++;
  st_kernel_end(m, ts, st_tracks_thread_row(&m->tracks, utid), NULL,
                st_intern(&m->storage, "sys_write"), NULL, 0);
}

/* Parses the begin or the end of a function of the kernel.  The idle threads of
 * all CPUs have one id, so their functions are on tracks of the CPUs. */
static void parse_function(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f) {
  bool is_entry = e->field == FUNCGRAPH_ENTRY;
  uint64_t function = f[is_entry ? 2 : 3].value;
  st_string name =
      st_interned_text(&m->sequences, e->generation,
                       ST_FIELD_INTERNED_DATA_KERNEL_SYMBOLS, function);
  if (!name) {
    /* Perfetto looks the symbol up a second time, for ftrace_event. */
    m->sequences.failed_lookups++;
    name = st_kernel_text(m, "%#llx", (unsigned long long)function);
  }
  struct st_fixed_track track = {
      .type = e->pid ? "thread_funcgraph" : "cpu_funcgraph",
      .name = e->pid ? st_intern(&m->storage, "Funcgraph")
                     : st_kernel_text(m, "swapper%u -funcgraph", e->cpu),
      .dimensions = {{e->pid ? "utid" : "cpu", .number = e->cpu}}};
  if (e->pid)
    track.dimensions[0].number = st_thread_seen(&m->processes, e->pid);
  uint32_t row = st_tracks_fixed_row(&m->tracks, &track);
  if (is_entry)
    st_kernel_begin(m, e->ts, -1, row, NULL, name, NULL, 0);
  else
    st_kernel_end(m, e->ts, row, NULL, name, NULL, 0);
}

static void parse_kprobe(struct st_importer* m, const struct st_kernel_event* e,
                         const struct st_field* f) {
  st_string name = st_field_text(&m->storage, f[1]);
  uint32_t track = st_kernel_thread_track(m, e->pid);
  if (f[2].value == KPROBE_BEGIN || f[2].value == KPROBE_INSTANT)
    st_kernel_begin(m, e->ts, f[2].value == KPROBE_BEGIN ? -1 : 0, track, NULL,
                    name, NULL, 0);
  else if (f[2].value == KPROBE_END)
    st_kernel_end(m, e->ts, track, NULL, name, NULL, 0);
}

/* What a driver's event says.  The phase is 0 if it is invalid. */
struct mark {
  char phase;
  struct st_field name;
  uint32_t pid;
  int64_t value;
};

/* Returns the phase of an event that has a type, or says whether it begins. */
static char phase_of(struct st_field type, struct st_field begin,
                     bool has_begin) {
  char phase = (char)type.value;
  if (!phase && has_begin)
    return begin.value ? 'B' : 'E';
  return phase && strchr("BECI", phase) ? phase : 0;
}

static struct mark read_mark(const struct st_kernel_event* e,
                             const struct st_field* f) {
  struct mark k = {.name = f[2], .pid = (uint32_t)f[1].value};
  switch (e->field) {
    case TRACING_MARK_WRITE:
      k.phase = f[3].number ? (f[3].value ? 'B' : 'E') : 0;
      break;
    case SDE_TRACING_MARK_WRITE:
      k.value = (int32_t)f[4].value;
      if (f[3].number || f[5].number)
        k.phase = phase_of(f[3], f[5], true);
      break;
    case SAMSUNG_TRACING_MARK_WRITE:
      k.value = (int32_t)f[5].value;
      if (f[4].number)
        k.phase = phase_of(f[4], f[3], true);
      if (f[4].number && !f[4].value)
        k.phase = 'E';
      break;
    case DPU_TRACING_MARK_WRITE:
      k.phase = phase_of(f[5], f[3], false);
      k.name = f[4];
      k.value = (int32_t)f[6].value;
      /* Drivers write pids that aren't those of the thread. */
      if (k.phase != 'C')
        k.pid = 0;
      break;
    default: /* ZERO: flags. */
      k.pid = (uint32_t)f[3].value;
      k.value = (int64_t)f[4].value;
      k.phase = f[1].value & 1   ? 'B'
                : f[1].value & 2 ? 'E'
                : f[1].value & 4 ? 'C'
                                 : 0;
  }
  return k;
}

bool st_parse_call_event(struct st_importer* m, const struct st_kernel_event* e,
                         const struct st_field* f) {
  struct mark k;
  switch (e->field) {
    case SYS_ENTER:
      if ((uint32_t)f[1].value < MAX_CALLS)
        enter_call(m, e, call_name(m, (uint32_t)f[1].value));
      return true;
    case SYS_EXIT:
      if ((uint32_t)f[1].value < MAX_CALLS)
        exit_call(m, e, f, call_name(m, (uint32_t)f[1].value));
      return true;
    case FUNCGRAPH_ENTRY:
    case FUNCGRAPH_EXIT:
      parse_function(m, e, f);
      return true;
    case KPROBE_EVENT:
      parse_kprobe(m, e, f);
      return true;
    case TRACING_MARK_WRITE:
    case SDE_TRACING_MARK_WRITE:
    case SAMSUNG_TRACING_MARK_WRITE:
    case DPU_TRACING_MARK_WRITE:
    case ZERO:
      k = read_mark(e, f);
      if (k.phase)
        st_parse_kernel_mark(m, e->ts, e->pid, k.phase, k.pid, k.name, k.value);
      else
        m->ftrace.atrace_errors++;
      return true;
    default:
      return false;
  }
}
