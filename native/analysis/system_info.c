/* Reads SystemInfo and CpuInfo, which describe the kernel and the CPUs. */
#include <stdlib.h>
#include <string.h>

#include "importer.h"

enum {
  /* SystemInfo */
  SYSTEM_UTSNAME = 1,
  SYSTEM_FINGERPRINT = 2,
  SYSTEM_SERVICE_VERSION = 4,
  SYSTEM_SDK_VERSION = 5,
  SYSTEM_PAGE_SIZE = 6,
  SYSTEM_TIMEZONE = 7,
  SYSTEM_CPU_COUNT = 8,
  SYSTEM_MANUFACTURER = 14,
  /* Utsname */
  UTSNAME_RELEASE = 3,
  UTSNAME_MACHINE = 4,
  /* CpuInfo, CpuInfo.Cpu */
  CPU_INFO_CPUS = 1,
  CPU_PROCESSOR = 1,
  CPU_FREQUENCIES = 2,
  CPU_CAPACITY = 3,
  CPU_ARM_IDENTIFIER = 4,
};

/* Reads the first two numbers of a kernel's release. */
static void read_version(struct st_importer* m, struct st_field release) {
  uint32_t numbers[2] = {0};
  size_t at = 0;
  for (uint32_t i = 0; i < 2; i++, at++) {
    while (at < release.size && release.data[at] >= '0' &&
           release.data[at] <= '9' && numbers[i] < 1000)
      numbers[i] = numbers[i] * 10 + release.data[at++] - '0';
    if (at < release.size && release.data[at] != '.')
      break;
  }
  m->machine->kernel = numbers[0] << 16 | numbers[1];
}

/* Sets a column of the machine's row in the table machine. */
static void set_machine(struct st_importer* m, uint32_t column,
                        struct st_cell cell) {
  st_table_set(&m->storage.tables[ST_MACHINE_TABLE], m->machine->cpus.machine,
               column, cell);
}

static void read_utsname(struct st_importer* m, struct st_field utsname) {
  static const char* const kKeys[] = {NULL, "system_name", "system_version",
                                      "system_release", "system_machine"};
  static const uint8_t kColumns[] = {0, ST_MACHINE_sysname, ST_MACHINE_version,
                                     ST_MACHINE_release, ST_MACHINE_arch};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, utsname.data, utsname.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < 1 || f.number > 4 || !f.data)
      continue;
    st_string text = st_string_add(&m->storage.strings, f.data, f.size);
    st_add_metadata(m, kKeys[f.number], false, ST_NULL, text);
    set_machine(m, kColumns[f.number], st_text(text));
    if (f.number == UTSNAME_RELEASE)
      read_version(m, f);
    else if (f.number == UTSNAME_MACHINE)
      m->machine->kinds.architecture = st_architecture_of(f.data, f.size);
  }
}

/* Whether the version of the tracing service is one of Stretto. */
static bool is_our_version(struct st_field version) {
  static const char kName[] = "Stretto";
  return version.size >= sizeof kName - 1 &&
         memcmp(version.data, kName, sizeof kName - 1) == 0;
}

void st_read_system_info(struct st_importer* m, const uint8_t* data,
                         size_t size) {
  struct st_decoder d;
  struct st_field f;
  m->machine->page_size = 4096;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == SYSTEM_UTSNAME && f.data)
      read_utsname(m, f);
    else if (f.number == SYSTEM_TIMEZONE)
      st_add_metadata(m, "timezone_off_mins", false, st_int((int32_t)f.value),
                      0);
    else if (f.number == SYSTEM_SERVICE_VERSION && f.data)
      m->passes.is_ours |= is_our_version(f);
    else if (f.number == SYSTEM_FINGERPRINT && f.data)
      set_machine(m, ST_MACHINE_android_build_fingerprint,
                  st_text(st_field_text(&m->storage, f)));
    else if (f.number == SYSTEM_MANUFACTURER && f.data)
      set_machine(m, ST_MACHINE_android_device_manufacturer,
                  st_text(st_field_text(&m->storage, f)));
    else if (f.number == SYSTEM_SDK_VERSION)
      set_machine(m, ST_MACHINE_android_sdk_version, st_int((int64_t)f.value));
    else if (f.number == SYSTEM_CPU_COUNT)
      set_machine(m, ST_MACHINE_num_cpus, st_int((uint32_t)f.value));
    else if (f.number == SYSTEM_PAGE_SIZE && f.value)
      m->machine->page_size = (uint32_t)f.value;
  }
}

struct cpu_info {
  uint32_t number, capacity, max_frequency;
  bool has_capacity, has_frequency;
  struct st_field message;
};

static struct cpu_info read_cpu(struct st_field message, uint32_t number) {
  struct cpu_info cpu = {.number = number, .message = message};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == CPU_CAPACITY) {
      cpu.capacity = (uint32_t)f.value;
      cpu.has_capacity = true;
    } else if (f.number == CPU_FREQUENCIES) {
      cpu.has_frequency = true;
      if ((uint32_t)f.value > cpu.max_frequency)
        cpu.max_frequency = (uint32_t)f.value;
    }
  }
  return cpu;
}

static int compare(uint32_t i, uint32_t j) {
  return i < j ? -1 : i > j;
}

static int by_capacity(const void* a, const void* b) {
  const struct cpu_info *x = a, *y = b;
  int order = compare(x->capacity, y->capacity);
  return order ? order : compare(x->number, y->number);
}

static int by_frequency(const void* a, const void* b) {
  const struct cpu_info *x = a, *y = b;
  int order = compare(x->max_frequency, y->max_frequency);
  return order ? order : compare(x->number, y->number);
}

static uint32_t arm_arguments(struct st_importer* m, struct st_field id) {
  static const char* const kKeys[] = {NULL,
                                      "arm_cpu_implementer",
                                      "arm_cpu_architecture",
                                      "arm_cpu_variant",
                                      "arm_cpu_part",
                                      "arm_cpu_revision"};
  uint64_t values[6] = {0};
  struct st_arg_list args = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, id.data, id.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < 6)
      values[f.number] = (uint32_t)f.value;
  }
  for (uint32_t i = 1; i < 6; i++)
    st_arg_add_int(&args, st_intern(&m->storage, kKeys[i]), ST_ARG_UINT,
                   (int64_t)values[i]);
  uint32_t set = st_arg_sets_add(&m->arg_sets, &m->storage, &args);
  st_arg_list_free(&args);
  return set;
}

static void add_cpu(struct st_importer* m, const struct cpu_info* info,
                    uint32_t cluster) {
  struct st_cpu* cpu = st_cpu_get(&m->machine->cpus, info->number);
  struct st_table* t = &m->storage.tables[ST_CPU_FREQ_TABLE];
  struct st_decoder d;
  struct st_field f;
  cpu->cluster = cluster;
  cpu->has_capacity |= info->has_capacity;
  if (info->has_capacity)
    cpu->capacity = info->capacity;
  st_decoder_init(&d, info->message.data, info->message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == CPU_PROCESSOR && f.data && f.size)
      cpu->processor = st_string_add(&m->storage.strings, f.data, f.size);
    else if (f.number == CPU_ARM_IDENTIFIER && f.data)
      cpu->arg_set = arm_arguments(m, f);
    else if (f.number == CPU_FREQUENCIES) {
      struct st_cell cells[ST_CPU_FREQ_COLUMNS] = {
          [ST_CPU_FREQ_id] = st_int(t->rows),
          [ST_CPU_FREQ_ucpu] = st_int(st_ucpu(&m->machine->cpus, info->number)),
          [ST_CPU_FREQ_freq] = st_int((uint32_t)f.value),
      };
      st_table_add(t, cells);
    }
  }
}

/* Assigns the CPUs to clusters.  CPUs of equal capacity form a cluster, if all
 * CPUs have a capacity; else CPUs with the same highest frequency, if all have
 * one; else all CPUs form one cluster. */
void st_read_cpu_info(struct st_importer* m, const uint8_t* data, size_t size) {
  struct cpu_info* cpus = st_bytes_take(&m->arena, ST_MAX_CPUS * sizeof *cpus);
  bool capacities = true, frequencies = true;
  uint32_t n = 0, cluster = 0;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f) && n < ST_MAX_CPUS) {
    if (f.number != CPU_INFO_CPUS || !f.data)
      continue;
    cpus[n] = read_cpu(f, n);
    capacities &= cpus[n].has_capacity;
    frequencies &= cpus[n++].has_frequency;
  }
  bool is_ranked = capacities || frequencies;
  if (is_ranked && n)
    qsort(cpus, n, sizeof *cpus, capacities ? by_capacity : by_frequency);
  for (uint32_t i = 0; i < n; i++) {
    if (i && is_ranked &&
        (capacities ? cpus[i - 1].capacity < cpus[i].capacity
                    : cpus[i - 1].max_frequency < cpus[i].max_frequency))
      cluster++;
    add_cpu(m, &cpus[i], cluster);
  }
}
