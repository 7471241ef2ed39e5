#include "probes/sys_files.h"

#include "core/fields.h"

#define FIELD(name) ST_FIELD_SYS_STATS_##name

static uint64_t u32(uint64_t value) {
  return value < UINT32_MAX ? value : UINT32_MAX;
}

static void append_text(struct st_message* m, uint32_t field,
                        struct st_text text) {
  st_message_append_bytes(m, field, text.at, st_text_size(text));
}

/* Writes a message with two numbers, in its fields 1 and 2. */
static void append_pair(struct st_message* stats, uint32_t field,
                        uint64_t first, uint64_t second) {
  uint8_t pair[2 * ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_u64_field(pair, 1, first);
  end = st_put_u64_field(end, 2, second);
  st_message_append_bytes(stats, field, pair, (size_t)(end - pair));
}

/* Returns the key of a counter; 0 if it has none.  The search begins at the
 * entry *next, which is set to the entry after the one that was found. */
static uint32_t key_of(const struct st_sys_choice* choice, struct st_text name,
                       size_t* next) {
  for (size_t i = 0; i < choice->counter_count; i++) {
    size_t at = (*next + i) % choice->counter_count;
    const struct st_counter_name* c = &choice->counters[at];
    if (c->size == st_text_size(name) &&
        memcmp(c->name, name.at, c->size) == 0) {
      *next = at + 1;
      return c->key;
    }
  }
  return 0;
}

static void counters(struct st_text text, const struct st_sys_choice* choice,
                     uint32_t field, struct st_message* stats) {
  struct st_text line, name;
  uint64_t value;
  size_t next = 0;
  while (st_text_line(&text, &line)) {
    if (!st_text_word(&line, &name) || !st_text_u64(&line, &value))
      continue;
    if (name.end[-1] == ':')
      name.end--;
    uint32_t key = key_of(choice, name, &next);
    if (key)
      append_pair(stats, field, key, value);
  }
}

void st_meminfo(struct st_text text, const struct st_sys_choice* choice,
                struct st_message* stats) {
  counters(text, choice, FIELD(MEMINFO), stats);
}

void st_vmstat(struct st_text text, const struct st_sys_choice* choice,
               struct st_message* stats) {
  counters(text, choice, FIELD(VMSTAT), stats);
}

/* --- /proc/stat */

enum { CPU_TIMES = 1, IRQ_COUNTS, SOFTIRQ_COUNTS, FORK_COUNT };

static bool is_chosen(const struct st_sys_choice* choice, unsigned part) {
  return !choice->parts || choice->parts >> part & 1;
}

static void cpu_times(struct st_text line, uint64_t ns_per_tick,
                      struct st_message* stats) {
  uint64_t cpu, ticks;
  if (line.at == line.end || st_text_is_blank(*line.at) ||
      !st_text_u64(&line, &cpu))
    return; /* the sum of all CPUs */
  struct st_message row;
  st_message_begin_nested(stats, &row, FIELD(CPU_STAT));
  st_message_append_varint(&row, FIELD(CPU_TIMES_CPU_ID), u32(cpu));
  for (uint32_t field = FIELD(CPU_TIMES_USER_NS);
       field <= FIELD(CPU_TIMES_STEAL_NS) && st_text_u64(&line, &ticks);
       field++)
    st_message_append_varint(&row, field, st_scaled(ticks, ns_per_tick));
  st_message_finalize(&row);
}

/* Writes the total and the count of each interrupt.  `omit_zeros` leaves out
 * counts of 0, because most of the hundreds of interrupts are unused. */
static void interrupts(struct st_text line, uint32_t total_field,
                       uint32_t field, bool omit_zeros,
                       struct st_message* stats) {
  uint64_t count;
  if (!st_text_u64(&line, &count))
    return;
  st_message_append_varint(stats, total_field, count);
  for (uint64_t irq = 0; st_text_u64(&line, &count); irq++) {
    if (count || !omit_zeros)
      append_pair(stats, field, irq, count);
  }
}

void st_stat(struct st_text text, const struct st_sys_choice* choice,
             struct st_message* stats) {
  struct st_text line;
  uint64_t forks;
  while (st_text_line(&text, &line)) {
    if (st_text_skip(&line, "cpu")) {
      if (is_chosen(choice, CPU_TIMES))
        cpu_times(line, choice->ns_per_tick, stats);
    } else if (st_text_skip(&line, "intr ")) {
      if (is_chosen(choice, IRQ_COUNTS))
        interrupts(line, FIELD(NUM_IRQ_TOTAL), FIELD(NUM_IRQ), true, stats);
    } else if (st_text_skip(&line, "softirq ")) {
      if (is_chosen(choice, SOFTIRQ_COUNTS))
        interrupts(line, FIELD(NUM_SOFTIRQ_TOTAL), FIELD(NUM_SOFTIRQ), false,
                   stats);
    } else if (st_text_skip(&line, "processes ") &&
               is_chosen(choice, FORK_COUNT) && st_text_u64(&line, &forks)) {
      st_message_append_varint(stats, FIELD(NUM_FORKS), forks);
    }
  }
}

/* --- /proc/buddyinfo: "Node 0, zone      DMA      1      0      3" */

void st_buddyinfo(struct st_text text, const struct st_sys_choice* choice,
                  struct st_message* stats) {
  struct st_text line, node, label, zone;
  uint64_t pages;
  (void)choice;
  while (st_text_line(&text, &line)) {
    if (!st_text_skip(&line, "Node ") || !st_text_word(&line, &node) ||
        node.end[-1] != ',' || !st_text_word(&line, &label) ||
        !st_text_is(label, "zone") || !st_text_word(&line, &zone))
      continue;
    node.end--;
    struct st_message row;
    st_message_begin_nested(stats, &row, FIELD(BUDDY_INFO));
    append_text(&row, FIELD(BUDDY_INFO_NODE), node);
    append_text(&row, FIELD(BUDDY_INFO_ZONE), zone);
    while (st_text_u64(&line, &pages))
      st_message_append_varint(&row, FIELD(BUDDY_INFO_ORDER_PAGES), u32(pages));
    st_message_finalize(&row);
  }
}

/* --- /proc/diskstats: major, minor, name, and then counts.  Old kernels have
 * neither discards nor flushes. */

void st_diskstats(struct st_text text, const struct st_sys_choice* choice,
                  struct st_message* stats) {
  static const uint8_t kFields[] = {0,
                                    0,
                                    FIELD(DISK_STAT_READ_SECTORS),
                                    FIELD(DISK_STAT_READ_TIME_MS),
                                    0,
                                    0,
                                    FIELD(DISK_STAT_WRITE_SECTORS),
                                    FIELD(DISK_STAT_WRITE_TIME_MS),
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    FIELD(DISK_STAT_DISCARD_SECTORS),
                                    FIELD(DISK_STAT_DISCARD_TIME_MS),
                                    FIELD(DISK_STAT_FLUSH_COUNT),
                                    FIELD(DISK_STAT_FLUSH_TIME_MS)};
  struct st_text line, name;
  uint64_t value;
  (void)choice;
  while (st_text_line(&text, &line)) {
    if (!st_text_u64(&line, &value) || !st_text_u64(&line, &value) ||
        !st_text_word(&line, &name))
      continue;
    struct st_message row;
    st_message_begin_nested(stats, &row, FIELD(DISK_STAT));
    append_text(&row, FIELD(DISK_STAT_DEVICE_NAME), name);
    for (size_t i = 0; i < sizeof kFields && st_text_u64(&line, &value); i++) {
      if (kFields[i])
        st_message_append_varint(&row, kFields[i], value);
    }
    st_message_finalize(&row);
  }
}

/* --- /proc/pressure: "some avg10=0.00 avg60=0.00 avg300=0.00 total=12".  The
 * total is in microseconds. */

void st_pressure(struct st_text text, const struct st_sys_choice* choice,
                 struct st_message* stats) {
  struct st_text line, kind, word;
  uint64_t total;
  while (st_text_line(&text, &line)) {
    bool is_full = st_text_word(&line, &kind) && st_text_is(kind, "full");
    if (!is_full && !st_text_is(kind, "some"))
      continue;
    while (st_text_word(&line, &word)) {
      if (st_text_skip(&word, "total=") && st_text_u64(&word, &total))
        append_pair(stats, FIELD(PSI), choice->resource + is_full,
                    st_scaled(total, 1000));
    }
  }
}

/* --- /proc/slabinfo: name, and then 15 words.  The fifth number is the pages
 * per slab; the second number after "slabdata" is the number of slabs. */

void st_slabinfo(struct st_text text, const struct st_sys_choice* choice,
                 struct st_message* stats) {
  struct st_text line, name, word;
  (void)choice;
  while (st_text_line(&text, &line)) {
    uint64_t pages = 0, slabs = 0;
    bool is_cache = st_text_word(&line, &name);
    for (int i = 0; i < 4 && is_cache; i++)
      is_cache = st_text_u64(&line, &pages);
    is_cache = is_cache && st_text_u64(&line, &pages);
    while (is_cache && st_text_word(&line, &word) &&
           !st_text_is(word, "slabdata"))
      continue;
    if (!is_cache || !st_text_u64(&line, &slabs) || !st_text_u64(&line, &slabs))
      continue;
    struct st_message row;
    st_message_begin_nested(stats, &row, FIELD(SLAB_INFO));
    append_text(&row, FIELD(SLAB_INFO_NAME), name);
    st_message_append_varint(&row, FIELD(SLAB_INFO_PAGES_PER_SLAB), u32(pages));
    st_message_append_varint(&row, FIELD(SLAB_INFO_NUM_SLABS), u32(slabs));
    st_message_finalize(&row);
  }
}

/* --- cpufreq/scaling_cur_freq: a number in kHz.  A CPU without the file has
 * the frequency 0, because the place of a value is the number of its CPU. */

void st_cpu_frequency(struct st_text text, const struct st_sys_choice* choice,
                      struct st_message* stats) {
  struct st_text line;
  uint64_t khz;
  (void)choice;
  bool is_number = st_text_line(&text, &line) && st_text_u64(&line, &khz) &&
                   line.at == line.end && text.at == text.end;
  st_message_append_varint(stats, FIELD(CPUFREQ_KHZ), is_number ? u32(khz) : 0);
}

const struct st_sys_group* st_sys_group_of(const char* name) {
  static const struct st_sys_group kGroups[] = {
      {"meminfo", st_meminfo, true},     {"vmstat", st_vmstat, false},
      {"stat", st_stat, true},           {"buddyinfo", st_buddyinfo, false},
      {"diskstat", st_diskstats, false}, {"psi", st_pressure, true},
      {"slab", st_slabinfo, false},      {"cpufreq", st_cpu_frequency, true}};
  for (size_t i = 0; i < sizeof kGroups / sizeof *kGroups; i++) {
    if (strcmp(kGroups[i].name, name) == 0)
      return &kGroups[i];
  }
  return NULL;
}
