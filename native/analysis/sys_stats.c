/* Parses SysStats: counters of the machine, from /proc and /sys. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/fields.h"
#include "counter_names.h"
#include "importer.h"

/* The fields of SysStats. */
enum {
  MEMINFO = 1,
  VMSTAT = 2,
  CPU_STAT = 3,
  NUM_FORKS = 4,
  NUM_IRQ_TOTAL = 5,
  NUM_IRQ = 6,
  NUM_SOFTIRQ_TOTAL = 7,
  NUM_SOFTIRQ = 8,
  DEVFREQ = 10,
  CPUFREQ_KHZ = 11,
  BUDDY_INFO = 12,
  DISK_STAT = 13,
  PSI = 14,
  THERMAL_ZONE = 15,
  CPUIDLE_STATE = 16,
  GPUFREQ_MHZ = 17,
  MAX_FIELDS = 10,
};

/* The fields of an inner message, by number. */
struct message {
  struct st_field fields[MAX_FIELDS];
};

static struct message decode(struct st_field content) {
  struct message message = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, content.data, content.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < MAX_FIELDS)
      message.fields[f.number] = f;
  }
  return message;
}

static st_string text_of(struct st_importer* m, struct st_field f) {
  return st_string_add(&m->storage.strings, f.data, f.size);
}

static void add(struct st_importer* m, int64_t ts, struct st_fixed_track f,
                double value) {
  f.is_counter = true;
  st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f), value);
}

/* Makes a name of at most 1023 bytes, as in Perfetto; the rest is cut off. */
__attribute__((format(printf, 2, 3))) static st_string name_of(
    struct st_importer* m, const char* format, ...) {
  char name[1024];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);
  size = size < (int)sizeof name ? size : (int)sizeof name - 1;
  return st_string_add(&m->storage.strings, name, (size_t)size);
}

/* The arguments of `%.*s` for a field's text. */
#define TEXT(f)                             \
  (int)((f).size < 1024 ? (f).size : 1024), \
      (f).data ? (const char*)(f).data : ""

uint32_t st_device_counter_row(struct st_importer* m, const char* type,
                               const char* suffix, struct st_field device) {
  struct st_fixed_track f = {
      .type = type,
      .name = name_of(m, "%.*s%s", TEXT(device), suffix),
      .is_counter = true,
      .dimensions = {{"linux_device", .text = text_of(m, device)}}};
  return st_tracks_fixed_row(&m->tracks, &f);
}

static void parse_memory(struct st_importer* m, int64_t ts, struct st_field f) {
  struct message entry = decode(f);
  uint64_t key = entry.fields[1].value;
  if (key >= sizeof kMeminfo / sizeof *kMeminfo) {
    m->counts.meminfo_unknown++;
    return;
  }
  st_string name = st_intern(&m->storage, kMeminfo[key]);
  add(m, ts,
      (struct st_fixed_track){.type = "meminfo",
                              .name = name,
                              .unit = "bytes",
                              .dimensions = {{"meminfo_key", .text = name}}},
      (double)entry.fields[2].value * 1024);
}

static void parse_vmstat(struct st_importer* m, int64_t ts, struct st_field f) {
  struct message entry = decode(f);
  uint64_t key = entry.fields[1].value;
  if (key >= sizeof kVmstat / sizeof *kVmstat) {
    m->counts.vmstat_unknown++;
    return;
  }
  st_string name = st_intern(&m->storage, kVmstat[key]);
  add(m, ts,
      (struct st_fixed_track){.type = "vmstat",
                              .name = name,
                              .dimensions = {{"vmstat_key", .text = name}}},
      (double)entry.fields[2].value);
}

static void parse_devfreq(struct st_importer* m, int64_t ts,
                          struct st_field f) {
  struct message entry = decode(f);
  st_add_counter(m, ts,
                 st_device_counter_row(m, "clock_frequency", " Frequency",
                                       entry.fields[1]),
                 (double)entry.fields[2].value);
}

static void parse_cpu_times(struct st_importer* m, int64_t ts,
                            struct st_field f) {
  static const char* const kKeys[] = {
      NULL,      NULL,         "user_ns", "user_nice_ns", "system_mode_ns",
      "idle_ns", "io_wait_ns", "irq_ns",  "softirq_ns",   "steal_ns"};
  struct message times = decode(f);
  if (!times.fields[1].number) {
    m->counts.invalid_cpu_times++;
    return;
  }
  for (uint32_t i = 2; i < MAX_FIELDS; i++) {
    struct st_fixed_track track = {
        .type = "cpustat",
        .name = name_of(m, "cpu.times.%s", kKeys[i]),
        .dimensions = {
            {"cpu", .number = (uint32_t)times.fields[1].value},
            {"cpustat_key", .text = st_intern(&m->storage, kKeys[i])}}};
    add(m, ts, track, (double)times.fields[i].value);
  }
}

static void parse_interrupts(struct st_importer* m, int64_t ts,
                             const char* type, struct st_field f) {
  struct message count = decode(f);
  int32_t irq = (int32_t)count.fields[1].value;
  struct st_fixed_track track = {
      .type = type,
      .name = name_of(m, "%s (id: %u)", type, (uint32_t)irq),
      .dimensions = {{"irq", .number = (uint32_t)irq}}};
  add(m, ts, track, (double)count.fields[2].value);
}

static void parse_buddies(struct st_importer* m, int64_t ts,
                          struct st_field content) {
  struct message info = decode(content);
  struct st_field node = info.fields[1], zone = info.fields[2];
  struct st_decoder d;
  struct st_field f;
  uint32_t order = 0;
  st_decoder_init(&d, content.data, content.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != 3 || f.data || order >= 31)
      continue;
    uint32_t size =
        (uint32_t)(((uint32_t)1 << order++) * (uint32_t)m->machine->page_size) /
        1024;
    struct st_fixed_track track = {
        .type = "buddyinfo",
        .name = name_of(m, "mem.buddyinfo[%.*s][%.*s][%u kB]", TEXT(node),
                        TEXT(zone), size),
        .dimensions = {{"buddyinfo_node", .text = text_of(m, node)},
                       {"buddyinfo_zone", .text = text_of(m, zone)},
                       {"buddyinfo_chunk_size_kb", .number = size}}};
    add(m, ts, track, (double)f.value);
  }
}

static void add_disk_counter(struct st_importer* m, int64_t ts,
                             struct st_field device, const char* counter,
                             const char* unit, double value) {
  struct st_fixed_track track = {
      .type = "diskstat",
      .name = name_of(m, "diskstat.[%.*s].%s", TEXT(device), counter),
      .unit = unit,
      .dimensions = {
          {"device_name", .text = text_of(m, device)},
          {"counter_name", .text = st_intern(&m->storage, counter)}}};
  add(m, ts, track, value);
}

/* Adds the counters of a disk: the differences from the last sample. */
static void parse_disk(struct st_importer* m, int64_t ts, struct st_field f) {
  static const char* const kCounters[][2] = {
      {"read_amount", "read_throughput"},
      {"write_amount", "write_throughput"},
      {"discard_amount", "discard_throughput"}};
  struct message stat = decode(f);
  struct st_field device = stat.fields[1];
  uint32_t* index = st_map_at(&m->machine->disks.by_name, text_of(m, device));
  bool is_first = !*index;
  if (is_first) {
    *ST_PUSH(&m->machine->disks.disks) = (struct st_disk){0};
    *index = m->machine->disks.disks.size;
  }
  double differences[MAX_FIELDS] = {0};
  struct st_disk* disk = &m->machine->disks.disks.data[*index - 1];
  for (uint32_t i = 2; i < MAX_FIELDS; i++) {
    uint64_t value = stat.fields[i].value;
    differences[i] = (double)(int64_t)(value - (uint64_t)disk->values[i]);
    disk->values[i] = (int64_t)value;
  }
  for (uint32_t i = 0; i < 3 && !is_first; i++) {
    double megabytes = differences[2 + 2 * i] / 2048;
    double ms = differences[3 + 2 * i];
    add_disk_counter(m, ts, device, kCounters[i][0], "MB", megabytes);
    add_disk_counter(m, ts, device, kCounters[i][1], "MB/s",
                     ms != 0 ? megabytes * 1000 / ms : 0);
  }
  if (is_first)
    return;
  add_disk_counter(m, ts, device, "flush_amount", "count", differences[8]);
  add_disk_counter(m, ts, device, "flush_time", "ms", differences[9]);
}

/* Parses a value of pressure stall information.  Returns false if the resource
 * is unknown: like Perfetto, the importer ignores the fields after it then. */
static bool parse_pressure(struct st_importer* m, int64_t ts,
                           struct st_field f) {
  static const char* const kResources[] = {"resource.unspecified",
                                           "cpu.some",
                                           "cpu.full",
                                           "io.some",
                                           "io.full",
                                           "mem.some",
                                           "mem.full"};
  struct message sample = decode(f);
  uint64_t resource = sample.fields[1].value;
  if (resource >= sizeof kResources / sizeof *kResources) {
    m->counts.psi_unknown++;
    return false;
  }
  struct st_fixed_track track = {
      .type = "psi",
      .name = name_of(m, "psi.%s", kResources[resource]),
      .dimensions = {{"psi_resource",
                      .text = st_intern(&m->storage, kResources[resource])}}};
  add(m, ts, track, (double)sample.fields[2].value);
  return true;
}

static void parse_temperature(struct st_importer* m, int64_t ts,
                              struct st_field f) {
  struct message zone = decode(f);
  st_string type = text_of(m, zone.fields[3]);
  add(m, ts,
      (struct st_fixed_track){.type = "thermal_temperature_sys",
                              .name = type,
                              .unit = "C",
                              .dimensions = {{"thermal_zone", .text = type}}},
      (double)zone.fields[2].value);
}

static void parse_idle_states(struct st_importer* m, int64_t ts,
                              struct st_field content) {
  uint32_t cpu = (uint32_t)decode(content).fields[1].value;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, content.data, content.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != 2 || !f.data)
      continue;
    struct message entry = decode(f);
    struct st_field state = entry.fields[1];
    struct st_fixed_track track = {
        .type = "cpu_idle_state",
        .name = name_of(m, "cpuidle%u.%.*s", cpu, TEXT(state)),
        .unit = "us",
        .dimensions = {{"cpu", .number = cpu},
                       {"state", .text = text_of(m, state)}}};
    add(m, ts, track, (double)entry.fields[2].value);
  }
}

static void add_total(struct st_importer* m, int64_t ts, const char* type,
                      uint64_t value) {
  add(m, ts,
      (struct st_fixed_track){.type = type,
                              .name = st_intern(&m->storage, type)},
      (double)value);
}

/* Parses a field of SysStats.  `count` is the number of earlier fields with the
 * same number.  Returns false if the following fields must be ignored. */
static bool parse_field(struct st_importer* m, int64_t ts, struct st_field f,
                        uint32_t count) {
  switch (f.number) {
    case MEMINFO:
      parse_memory(m, ts, f);
      break;
    case DEVFREQ:
      parse_devfreq(m, ts, f);
      break;
    case CPUFREQ_KHZ:
      add(m, ts,
          (struct st_fixed_track){.type = "cpu_frequency",
                                  .name = st_intern(&m->storage, "cpufreq"),
                                  .dimensions = {{"cpu", .number = count}}},
          (double)(uint32_t)f.value);
      break;
    case VMSTAT:
      parse_vmstat(m, ts, f);
      break;
    case CPU_STAT:
      parse_cpu_times(m, ts, f);
      break;
    case NUM_IRQ:
      parse_interrupts(m, ts, "num_irq", f);
      break;
    case NUM_SOFTIRQ:
      parse_interrupts(m, ts, "num_softirq", f);
      break;
    case NUM_FORKS:
      add_total(m, ts, "num_forks", f.value);
      break;
    case NUM_IRQ_TOTAL:
      add_total(m, ts, "num_irq_total", f.value);
      break;
    case NUM_SOFTIRQ_TOTAL:
      add_total(m, ts, "num_softirq_total", f.value);
      break;
    case BUDDY_INFO:
      parse_buddies(m, ts, f);
      break;
    case DISK_STAT:
      parse_disk(m, ts, f);
      break;
    case PSI:
      return parse_pressure(m, ts, f);
    case THERMAL_ZONE:
      parse_temperature(m, ts, f);
      break;
    case CPUIDLE_STATE:
      parse_idle_states(m, ts, f);
      break;
    default:
      add(m, ts,
          (struct st_fixed_track){.type = "gpu_frequency",
                                  .name = st_intern(&m->storage, "gpufreq"),
                                  .unit = "MHz",
                                  .dimensions = {{.key = "gpu"}}},
          (double)f.value);
  }
  return true;
}

void st_parse_sys_stats(struct st_importer* m, const struct st_event* e) {
  /* The order in which Perfetto adds the rows. */
  static const uint32_t kOrder[] = {
      MEMINFO,       DEVFREQ,           CPUFREQ_KHZ,   VMSTAT,
      CPU_STAT,      NUM_IRQ,           NUM_SOFTIRQ,   NUM_FORKS,
      NUM_IRQ_TOTAL, NUM_SOFTIRQ_TOTAL, BUDDY_INFO,    DISK_STAT,
      PSI,           THERMAL_ZONE,      CPUIDLE_STATE, GPUFREQ_MHZ};
  for (uint32_t i = 0; i < sizeof kOrder / sizeof *kOrder; i++) {
    struct st_decoder d;
    struct st_field f;
    uint32_t count = 0;
    st_decoder_init(&d, e->data, e->size);
    while (st_decoder_next(&d, &f)) {
      if (f.number == kOrder[i] && !parse_field(m, e->ts, f, count++))
        return;
    }
  }
}

void st_disks_free(struct st_disks* d) {
  free(d->disks.data);
  st_map_free(&d->by_name);
}
