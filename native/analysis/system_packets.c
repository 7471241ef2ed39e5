/* Parses packets other than track events: descriptors of threads and processes,
 * the process tree, process statistics. */
#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* ProcessTree */
  TREE_PROCESSES = 1,
  TREE_THREADS = 2,
  /* ProcessTree.Process */
  PROCESS_PID = 1,
  PROCESS_PPID = 2,
  PROCESS_CMDLINE = 3,
  PROCESS_UID = 5,
  PROCESS_START = 7,
  PROCESS_IS_KTHREAD = 8,
  /* ProcessTree.Thread */
  THREAD_TID = 1,
  THREAD_NAME = 2,
  THREAD_TGID = 3,
  /* ProcessStats */
  STATS_PROCESSES = 1,
  STATS_PID = 1,
  STATS_OOM_SCORE = 10,
  STATS_PEAK_RESETTABLE = 12,
  STATS_FOOTPRINT = 13,
  STATS_PEAK_RSS = 14,
  STATS_THREADS = 11,
  STATS_FDS = 15,
  FD_NUMBER = 1,
  FD_PATH = 2,
  /* InitialDisplayState */
  DISPLAY_STATE = 1,
};

/* `chrome` is the ChromeThreadDescriptor; its data are NULL if there is none. */
static void parse_thread_descriptor(struct st_importer* m,
                                    struct st_field thread,
                                    struct st_field chrome) {
  struct st_decoder d;
  struct st_field f;
  int64_t pid = 0, tid = 0;
  st_string name = 0;
  st_decoder_init(&d, thread.data, thread.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_THREAD_DESCRIPTOR_PID)
      pid = (uint32_t)f.value;
    else if (f.number == ST_FIELD_THREAD_DESCRIPTOR_TID)
      tid = (int64_t)f.value;
    else if (f.number == ST_FIELD_THREAD_DESCRIPTOR_THREAD_NAME)
      name = st_field_text(&m->storage, f);
  }
  if (st_tid_is_sandboxed(chrome))
    tid = st_sandboxed_tid(tid, pid);
  uint32_t utid = st_thread_get(&m->processes, tid, pid);
  st_thread_set_name(&m->processes, utid, name, ST_NAME_DESCRIPTOR);
}

static void add_label(struct st_importer* m, struct st_arg_list* args,
                      struct st_field f, uint32_t index) {
  char key[48] = "chrome.process_label[";
  char digits[12];
  size_t n = 0, size = strlen(key);
  do
    digits[n++] = (char)('0' + index % 10);
  while (index /= 10);
  while (n)
    key[size++] = digits[--n];
  key[size++] = ']';
  st_arg_list_add(
      args, (struct st_arg){st_intern(&m->storage, "chrome.process_label"),
                            st_string_add(&m->storage.strings, key, size),
                            ST_ARG_STRING,
                            {.text = st_field_text(&m->storage, f)}});
}

static uint32_t parse_process_descriptor(struct st_importer* m,
                                         struct st_field process) {
  struct st_decoder d;
  struct st_field f;
  int64_t pid = 0, start = 0;
  st_string name = 0;
  uint32_t labels = 0;
  uint64_t type = 0;
  st_decoder_init(&d, process.data, process.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_PID)
      pid = (uint32_t)f.value;
    else if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_PROCESS_NAME)
      name = f.size ? st_field_text(&m->storage, f) : 0;
    else if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_START_TIMESTAMP_NS)
      start = (int64_t)f.value;
    else if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_CHROME_PROCESS_TYPE)
      type = f.value;
  }
  uint32_t upid = st_process_get(&m->processes, pid);
  st_process_set_name(&m->processes, upid, name, false);
  if (start > 0)
    st_process_set_start(&m->processes, upid, start);
  st_process_set_name(&m->processes, upid, st_chrome_process_name(m, type),
                      false);
  struct st_arg_list* args = &m->processes.processes.data[upid].args;
  st_decoder_init(&d, process.data, process.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_PROCESS_LABELS && f.data)
      add_label(m, args, f, labels++);
  }
  return upid;
}

/* Names the thread or process of a descriptor.  The track and its ancestors are
 * resolved first, because a pid or tid that is reused gets its own row then. */
static void parse_descriptor(struct st_importer* m, const struct st_event* e) {
  struct st_decoder d;
  struct st_field f, thread = {0}, process = {0}, chrome = {0};
  struct st_field chrome_thread = {0};
  uint64_t uuid = 0;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACK_DESCRIPTOR_UUID)
      uuid = f.value;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_THREAD && f.data)
      thread = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_PROCESS && f.data)
      process = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_CHROME_PROCESS && f.data)
      chrome = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_CHROME_THREAD && f.data)
      chrome_thread = f;
  }
  if (!st_tracks_find(&m->tracks, uuid))
    return;
  if (!st_tracks_resolve(&m->tracks, uuid)) {
    m->counts.parser_errors++;
    return;
  }
  if (thread.data) {
    parse_thread_descriptor(m, thread, chrome_thread);
  } else if (process.data) {
    uint32_t upid = parse_process_descriptor(m, process);
    if (chrome.data)
      st_parse_chrome_process(m, upid, chrome);
  }
}

/* A process of the process tree. */
struct tree_process {
  int64_t pid, ppid;
  uint64_t uid, start;
  bool has_uid, has_start, has_kthread, is_kthread;
  uint32_t elements;
  st_string name;
  ST_ARRAY(char) cmdline;
};

static void append(struct tree_process* p, struct st_field f) {
  ST_RESERVE(&p->cmdline, f.size + 1);
  if (p->elements++)
    *ST_PUSH(&p->cmdline) = ' ';
  if (f.size)
    memcpy(p->cmdline.data + p->cmdline.size, f.data, f.size);
  p->cmdline.size += (uint32_t)f.size;
}

static void read_tree_process(struct st_importer* m, struct tree_process* p,
                              struct st_field process) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, process.data, process.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == PROCESS_PID)
      p->pid = (uint32_t)f.value;
    else if (f.number == PROCESS_PPID)
      p->ppid = (uint32_t)f.value;
    else if (f.number == PROCESS_UID)
      p->has_uid = true, p->uid = (uint32_t)f.value;
    else if (f.number == PROCESS_START)
      p->has_start = true, p->start = f.value;
    else if (f.number == PROCESS_IS_KTHREAD)
      p->has_kthread = true, p->is_kthread = f.value != 0;
    else if (f.number == PROCESS_CMDLINE && f.data) {
      if (!p->elements)
        p->name = st_field_text(&m->storage, f);
      append(p, f);
    }
  }
}

/* Cuts the end of the process's name: from the first space if the command line
 * has one element, from `+` or `-` if the process is a kernel worker. */
static void shorten(struct st_importer* m, struct tree_process* p) {
  size_t size;
  const char* name = st_string_text(&m->storage.strings, p->name, &size);
  size_t end = size;
  bool is_worker = p->ppid == 2 && size > 8 && memcmp(name, "kworker/", 8) == 0;
  for (size_t i = 0; i < end; i++) {
    if ((p->elements == 1 && name[i] == ' ') ||
        (is_worker && (name[i] == '+' || name[i] == '-')))
      end = i;
  }
  if (end == size)
    return;
  char* copy = st_bytes_take(&m->arena, end);
  memcpy(copy, name, end);
  p->name = st_string_add(&m->storage.strings, copy, end);
  if (is_worker)
    p->cmdline.size = (uint32_t)end;
}

static void store_tree_process(struct st_importer* m, struct tree_process* p) {
  struct st_processes* processes = &m->processes;
  struct st_table* t = &m->storage.tables[ST_PROCESS_TABLE];
  uint32_t parent = st_process_get(processes, p->ppid);
  uint32_t upid = st_process_get(processes, p->pid);
  struct st_cell old = st_table_get(t, upid, ST_PROCESS_parent_upid);
  if (old.valid && old.i != parent)
    upid = st_process_restart(processes, p->pid);
  st_table_set(t, upid, ST_PROCESS_parent_upid, st_int(parent));
  shorten(m, p);
  st_process_set_name(processes, upid, p->name, true);
  st_table_set(t, upid, ST_PROCESS_cmdline,
               st_text(st_string_add(&m->storage.strings, p->cmdline.data,
                                     p->cmdline.size)));
  if (p->has_uid) {
    st_table_set(t, upid, ST_PROCESS_uid, st_int((int64_t)p->uid));
    st_table_set(t, upid, ST_PROCESS_android_appid,
                 st_int((int64_t)p->uid % 100000));
    st_table_set(t, upid, ST_PROCESS_android_user_id,
                 st_int((int64_t)p->uid / 100000));
  }
  int64_t start;
  if (p->has_start && st_clocks_convert(&m->machine->clocks, ST_CLOCK_BOOTTIME,
                                        (int64_t)p->start, &start))
    st_process_set_start(processes, upid, start);
  if (p->has_kthread)
    st_arg_add_int(&processes->processes.data[upid].args,
                   st_intern(&m->storage, "is_kthread"), ST_ARG_BOOL,
                   p->is_kthread);
}

static void parse_tree_process(struct st_importer* m, struct st_field process) {
  struct tree_process p = {0};
  read_tree_process(m, &p, process);
  if (p.elements)
    store_tree_process(m, &p);
  free(p.cmdline.data);
}

static void parse_tree_thread(struct st_importer* m, struct st_field thread) {
  struct st_decoder d;
  struct st_field f;
  int64_t tid = 0, tgid = 0;
  st_string name = 0;
  st_decoder_init(&d, thread.data, thread.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == THREAD_TID)
      tid = (uint32_t)f.value;
    else if (f.number == THREAD_TGID)
      tgid = (uint32_t)f.value;
    else if (f.number == THREAD_NAME)
      name = st_field_text(&m->storage, f);
  }
  uint32_t utid = st_thread_get(&m->processes, tid, tgid);
  st_thread_set_name(&m->processes, utid, name, ST_NAME_PROCESS_TREE);
}

void st_parse_tree(struct st_importer* m, const struct st_event* e,
                   st_part_parser parse_process, st_part_parser parse_thread) {
  struct st_decoder d;
  struct st_field f;
  for (uint32_t part = TREE_PROCESSES; part <= TREE_THREADS; part++) {
    st_decoder_init(&d, e->data, e->size);
    while (st_decoder_next(&d, &f)) {
      if (f.number == part && f.data)
        (part == TREE_PROCESSES ? parse_process : parse_thread)(m, f);
    }
  }
}

/* The counters of ProcessStats.Process, by field number. */
static const struct {
  uint8_t field;
  const char *type, *key, *name;
  int32_t scale;
} kCounters[] = {
    {2, "process_memory", "virt", "mem.virt", 1024},
    {3, "process_memory", "rss", "mem.rss", 1024},
    {4, "process_memory", "rss.anon", "mem.rss.anon", 1024},
    {5, "process_memory", "rss.file", "mem.rss.file", 1024},
    {6, "process_memory", "rss.shmem", "mem.rss.shmem", 1024},
    {7, "process_memory", "swap", "mem.swap", 1024},
    {8, "process_memory", "locked", "mem.locked", 1024},
    {9, "process_memory", "rss.watermark", "mem.rss.watermark", 1024},
    {24, "process_memory", "dmabuf_rss", "mem.dmabuf_rss", 1024},
    {16, "smaps", "rss", "mem.smaps.rss", 1024},
    {17, "smaps", "pss", "mem.smaps.pss", 1024},
    {18, "smaps", "pss.anon", "mem.smaps.pss.anon", 1024},
    {19, "smaps", "pss.file", "mem.smaps.pss.file", 1024},
    {20, "smaps", "pss.smem", "mem.smaps.pss.smem", 1024},
    {23, "smaps", "swap.pss", "mem.smaps.swap.pss", 1024},
    {21, "proc_stat_runtime", "user_ns", "runtime.user_ns", 1},
    {22, "proc_stat_runtime", "kernel_ns", "runtime.kernel_ns", 1},
    {STATS_OOM_SCORE, "oom_score_adj", NULL, "oom_score_adj", 1},
    {STATS_FOOTPRINT, "chrome_process_stats", "private_footprint_kb",
     "chrome.private_footprint_kb", 1024},
    {STATS_PEAK_RSS, "chrome_process_stats", "peak_resident_set_kb",
     "chrome.peak_resident_set_kb", 1024},
};

static uint32_t find_counter(uint32_t field) {
  uint32_t n = sizeof kCounters / sizeof *kCounters, i = 0;
  while (i < n && kCounters[i].field != field)
    i++;
  return i == n ? ST_NO_ROW : i;
}

static uint32_t counter_row(struct st_importer* m, uint32_t upid,
                            uint32_t kind) {
  const char* type = kCounters[kind].type;
  struct st_fixed_track f = {
      .type = type,
      .name = st_intern(&m->storage, kCounters[kind].name),
      .is_counter = true,
      .dimensions = {{"upid", .number = upid}}};
  if (kCounters[kind].key)
    f.dimensions[1] = (struct st_dimension){
        strcmp(type, "smaps") == 0                  ? "smaps_key"
        : strcmp(type, "chrome_process_stats") == 0 ? "key"
        : strcmp(type, "process_memory") == 0       ? "process_memory_key"
                                                    : "proc_stat_runtime_key",
        .text = st_intern(&m->storage, kCounters[kind].key)};
  return st_tracks_fixed_row(&m->tracks, &f);
}

static void add_process_counter(struct st_importer* m, int64_t ts,
                                uint32_t upid, struct st_field f) {
  uint32_t kind = find_counter(f.number);
  if (kind == ST_NO_ROW)
    return;
  int64_t value = (int64_t)(f.value * (uint64_t)kCounters[kind].scale);
  st_add_counter(m, ts, counter_row(m, upid, kind), (double)value);
}

static void add_file(struct st_importer* m, int64_t ts, int64_t pid,
                     struct st_field info) {
  struct st_table* t = &m->storage.tables[ST_FD_TABLE];
  struct st_cell cells[ST_FD_COLUMNS] = {
      [ST_FD_id] = st_int(t->rows),
      [ST_FD_ufd] = st_int(0),
      [ST_FD_fd] = st_int(0),
      [ST_FD_ts] = st_int(ts),
      [ST_FD_upid] = st_int(st_process_get(&m->processes, pid)),
  };
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, info.data, info.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FD_NUMBER)
      cells[ST_FD_fd] = st_int((int64_t)f.value);
    else if (f.number == FD_PATH)
      cells[ST_FD_path] = st_text(st_field_text(&m->storage, f));
  }
  st_table_add(t, cells);
}

static bool is_of_chrome(uint32_t field) {
  return field >= STATS_PEAK_RESETTABLE && field <= STATS_PEAK_RSS;
}

static void parse_chrome_field(struct st_importer* m, int64_t ts, int64_t pid,
                               struct st_field f) {
  uint32_t upid = st_process_get(&m->processes, pid);
  if (f.number == STATS_PEAK_RESETTABLE)
    st_arg_add_int(&m->processes.processes.data[upid].args,
                   st_intern(&m->storage, "is_peak_rss_resettable"),
                   ST_ARG_BOOL, f.value != 0);
  else
    add_process_counter(m, ts, upid, f);
}

static void parse_process_field(struct st_importer* m, int64_t ts, int64_t pid,
                                struct st_field f) {
  if (f.number == STATS_THREADS && f.data) {
    st_thread_get(&m->processes, (uint32_t)st_message_find(f, THREAD_TID).value,
                  pid);
  } else if (f.number == STATS_FDS && f.data) {
    add_file(m, ts, pid, f);
  } else if (f.number != STATS_PID && f.number != STATS_PEAK_RESETTABLE &&
             f.number != STATS_FOOTPRINT) {
    uint32_t upid = st_process_get(&m->processes, pid);
    /* Perfetto counts Chrome's peak as unknown, although it is stored. */
    if (f.number == STATS_PEAK_RSS || find_counter(f.number) == ST_NO_ROW)
      m->counts.proc_stat_unknown++;
    else
      add_process_counter(m, ts, upid, f);
  }
}

/* The first pass parses Chrome's fields of all processes, the second pass the
 * other fields. */
static void parse_stats(struct st_importer* m, const struct st_event* e) {
  for (uint32_t pass = 0; pass < 2; pass++) {
    struct st_decoder d, inner;
    struct st_field process, f;
    st_decoder_init(&d, e->data, e->size);
    while (st_decoder_next(&d, &process)) {
      if (process.number != STATS_PROCESSES || !process.data)
        continue;
      int64_t pid = (uint32_t)st_message_find(process, STATS_PID).value;
      st_decoder_init(&inner, process.data, process.size);
      while (st_decoder_next(&inner, &f)) {
        if (pass)
          parse_process_field(m, e->ts, pid, f);
        else if (is_of_chrome(f.number) && !f.data)
          parse_chrome_field(m, e->ts, pid, f);
      }
    }
  }
}

static void parse_display_state(struct st_importer* m,
                                const struct st_event* e) {
  struct st_field packet = {.data = e->data, .size = e->size};
  st_set_screen_state(
      m, e->ts, (double)(int32_t)st_message_find(packet, DISPLAY_STATE).value);
}

void st_parse_packet(struct st_importer* m, const struct st_event* e) {
  struct st_field packet = {.data = e->data, .size = e->size};
  switch (e->field) {
    case ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR:
      parse_descriptor(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_THREAD_DESCRIPTOR:
      parse_thread_descriptor(m, packet, (struct st_field){0});
      break;
    case ST_FIELD_TRACE_PACKET_PROCESS_DESCRIPTOR:
      parse_process_descriptor(m, packet);
      break;
    case ST_FIELD_TRACE_PACKET_CHROME_EVENTS:
      st_parse_chrome_events(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_PROCESS_TREE:
      st_parse_tree(m, e, parse_tree_process, parse_tree_thread);
      break;
    case ST_FIELD_TRACE_PACKET_PROCESS_STATS:
      parse_stats(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_TRIGGER:
    case ST_FIELD_TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER:
      st_parse_trigger(m, e);
      break;
    case ST_FIELD_INITIAL_DISPLAY_STATE:
      parse_display_state(m, e);
      break;
    case ST_FIELD_PACKAGES_LIST:
      st_parse_packages(m, e);
      break;
    case ST_FIELD_DEOBFUSCATION_MAPPING:
      st_parse_deobfuscation(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_SYS_STATS:
      st_parse_sys_stats(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_TASK_STATE_EVENT:
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_TASK_RENAME_EVENT:
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_PROCESS_TREE:
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_CPU_FREQ_EVENT:
      st_parse_generic_kernel(m, e);
      break;
    case ST_FIELD_TRACE_PACKET_STREAMING_PROFILE_PACKET:
    case ST_FIELD_TRACE_PACKET_PERF_SAMPLE:
    case ST_FIELD_TRACE_PACKET_PROFILE_PACKET:
    case ST_FIELD_TRACE_PACKET_MODULE_SYMBOLS:
    case ST_FIELD_TRACE_PACKET_SMAPS_PACKET:
    case ST_FIELD_HEAP_GRAPH:
      st_parse_profile(m, e);
      break;
    default:
      break;
  }
}
