#include "probes/perf_sampler.h"

#include <stdlib.h>
#include <string.h>

enum {
  /* TracePacket */
  TIMESTAMP = 8,
  SEQUENCE_FLAGS = 13,
  PERF_SAMPLE = 66,
  NEEDS_INCREMENTAL_STATE = 2,
  /* PerfSample */
  CPU = 1,
  PID = 2,
  TID = 3,
  CALLSTACK = 4,
  CPU_MODE = 5,
  TIMEBASE_COUNT = 6,
  FOLLOWER_COUNTS = 7,
  UNWIND_ERROR = 16,
  SKIPPED_REASON = 18,
  /* PerfSample.SampleSkipReason */
  NOT_SKIPPED = 0,
  SKIPPED_UNWIND = 2,
  SKIPPED_ENQUEUE = 3,
  SKIPPED_NOT_IN_SCOPE = 4,

  USER_MODE = 2,
  MAX_KNOWN = 1 << 20, /* Threads, and processes. */
};

/* --- Life cycle ---------------------------------------------------------- */

struct st_perf_sampler* st_perf_sampler_create(uint32_t cpu_count,
                                               unsigned members,
                                               size_t capacity,
                                               uint32_t max_samples) {
  struct st_perf_sampler* s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->cpus = calloc(cpu_count, sizeof *s->cpus);
  s->records = malloc(capacity);
  s->table = st_stack_table_create();
  s->capacity = capacity;
  s->members = members;
  s->max_samples = max_samples;
  s->processes.limit = s->threads.limit = MAX_KNOWN;
  if (members & ST_PERF_USER_STACK)
    s->unwinder = st_perf_unwinder_create();
  bool can_unwind = s->unwinder || !(members & ST_PERF_USER_STACK);
  if (s->cpus && s->records && s->table && can_unwind)
    return s;
  st_perf_sampler_destroy(s);
  return NULL;
}

void st_perf_sampler_destroy(struct st_perf_sampler* s) {
  for (uint32_t i = 0; i < s->cpu_count; i++)
    st_perf_ring_unmap(&s->cpus[i].ring);
  if (s->table)
    st_stack_table_destroy(s->table);
  st_address_table_clear(&s->processes);
  st_address_table_clear(&s->threads);
  st_perf_unwinder_destroy(s->unwinder);
  free(s->cpus);
  free(s->records);
  free(s->entries);
  free(s);
}

/* --- Processes and threads ----------------------------------------------- */

/* The key of a pid or tid: keys of the table are not 0, as the idle task's. */
static uint64_t key_of(uint32_t id) {
  return (uint64_t)id + 1;
}

static void forget(struct st_address_table* t, uint32_t id) {
  uint64_t value;
  st_address_table_take(t, key_of(id), &value);
}

/* Returns false if the process is undecided. */
static bool find_process(const struct st_perf_sampler* s, uint32_t pid,
                         uint64_t* space, bool* in_scope) {
  const struct st_address_slot* slot =
      st_address_table_find(&s->processes, key_of(pid));
  if (!slot)
    return false;
  *space = slot->value >> 1;
  *in_scope = slot->value & 1;
  return true;
}

static void remember(struct st_address_table* t, uint32_t id, uint64_t value) {
  if (st_address_table_put(t, key_of(id), value))
    return;
  st_address_table_clear(t);
  st_address_table_put(t, key_of(id), value);
}

static void give_space(struct st_perf_sampler* s, uint32_t pid, bool in_scope) {
  remember(&s->processes, pid, ++s->last_space << 1 | in_scope);
}

void st_perf_sampler_decide(struct st_perf_sampler* s, uint32_t pid,
                            bool in_scope) {
  uint64_t space;
  bool was_in_scope;
  if (!find_process(s, pid, &space, &was_in_scope) || was_in_scope != in_scope)
    give_space(s, pid, in_scope);
}

void st_perf_sampler_renew(struct st_perf_sampler* s, uint32_t pid) {
  uint64_t space;
  bool in_scope;
  if (find_process(s, pid, &space, &in_scope))
    give_space(s, pid, in_scope);
}

/* --- Reading ------------------------------------------------------------- */

static bool reserve_entry(struct st_perf_sampler* s) {
  if (s->entry_count < s->entry_capacity)
    return true;
  size_t capacity = s->entry_capacity ? s->entry_capacity * 2 : 1024;
  void* grown = realloc(s->entries, capacity * sizeof *s->entries);
  if (!grown)
    return false;
  s->entries = grown;
  s->entry_capacity = capacity;
  return true;
}

void st_perf_sampler_add_records(struct st_perf_sampler* s, uint32_t cpu,
                                 const uint8_t* records, size_t size) {
  const uint8_t *at = records, *end = records + size, *begin = at;
  struct st_perf_record r;
  while (st_perf_record_next(&at, end, s->members, &r)) {
    if (r.type == ST_PERF_DAMAGED || !reserve_entry(s))
      s->damaged++;
    else
      s->entries[s->entry_count++] =
          (struct st_perf_entry){r.time, begin, (uint32_t)(at - begin), cpu};
    begin = at;
  }
}

static int compare(const void* a, const void* b) {
  const struct st_perf_entry *x = a, *y = b;
  if (x->time != y->time)
    return x->time < y->time ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

void st_perf_sampler_sort(struct st_perf_sampler* s) {
  if (s->entry_count)
    qsort(s->entries, s->entry_count, sizeof *s->entries, compare);
}

bool st_perf_sampler_read(struct st_perf_sampler* s) {
  bool more = false;
  s->size = s->entry_count = s->next = 0;
  s->stack_bytes = 0;
  size_t share = s->cpu_count ? s->capacity / s->cpu_count : 0;
  for (uint32_t i = 0; i < s->cpu_count; i++) {
    struct st_perf_cpu* c = &s->cpus[i];
    uint32_t samples = s->max_samples;
    uint8_t* out = s->records + s->size;
    size_t size = st_perf_ring_copy(&c->ring, out, share, &samples);
    more |= !samples || share - size < ST_PERF_MAX_RECORD;
    st_perf_sampler_add_records(s, c->cpu, out, size);
    s->size += size;
  }
  st_perf_sampler_sort(s);
  return more;
}

/* --- Stacks -------------------------------------------------------------- */

uint32_t st_perf_sampler_add_frame(struct st_perf_sampler* s, uint64_t space,
                                   uint64_t address, uint64_t key) {
  uint32_t known = st_stack_table_known(s->table, space, address);
  return known ? known : st_stack_table_add(s->table, space, address, key, 0);
}

void st_perf_sampler_clear(struct st_perf_sampler* s) {
  st_stack_table_clear(s->table);
}

void st_perf_sampler_add_code(struct st_perf_sampler* s, uint64_t start,
                              uint64_t end, uint64_t bias,
                              const struct st_elf_file* file) {
  uint64_t space;
  bool in_scope;
  if (s->unwinder && find_process(s, s->record.pid, &space, &in_scope))
    st_perf_unwinder_add(s->unwinder,
                         &(struct st_perf_code){space, start, end, bias, file});
}

void st_perf_sampler_clear_code(struct st_perf_sampler* s) {
  if (s->unwinder)
    st_perf_unwinder_clear(s->unwinder);
}

/* Stores the kernel's part of the stack.  Returns its number of words. */
static uint32_t copy_kernel_stack(struct st_perf_sampler* s) {
  uint32_t words = s->record.stack_size;
  words = words < ST_PERF_MAX_DEPTH ? words : ST_PERF_MAX_DEPTH;
  for (uint32_t i = 0; i < words; i++)
    s->unwound[i] = st_perf_word(s->record.stack, i);
  return words;
}

/* Makes the sample's stack.  Returns false if the owner should be asked which code
 * an address has. */
static bool unwind(struct st_perf_sampler* s, uint64_t space) {
  uint32_t words = copy_kernel_stack(s);
  uint64_t* pcs = s->unwound + words + 1;
  s->unwound[words++] = ST_PERF_USER_MARK;
  struct st_perf_unwound found = st_perf_unwind(s->unwinder, space, &s->record,
                                                pcs, ST_PERF_MAX_DEPTH - 1);
  bool was_asked = s->asked == ST_PERF_NEW_CODE && found.missing == s->missing;
  s->missing = found.missing;
  s->unwind_error = found.error;
  if (found.missing && !was_asked)
    return false;
  for (uint32_t i = 1; i < found.depth; i++)
    pcs[i]++; /* As the kernel's: number_frames() reduces all but the first. */
  s->record.stack = (const uint8_t*)s->unwound;
  s->record.stack_size = words + found.depth;
  s->record.registers = NULL; /* It is done. */
  return true;
}

/* Stores the numbers of the stack's frames, the outermost first, and collects
 * the addresses without a number.  Returns the depth. */
static uint32_t number_frames(struct st_perf_sampler* s, uint64_t user_space,
                              uint32_t numbers[ST_PERF_MAX_DEPTH]) {
  uint64_t space = ST_PERF_KERNEL_SPACE;
  uint32_t depth = 0, at = ST_PERF_MAX_DEPTH;
  bool is_innermost = true;
  s->unknown_count = 0;
  for (uint32_t i = 0; i < s->record.stack_size && at; i++) {
    uint64_t address = st_perf_word(s->record.stack, i);
    if (address >= ST_PERF_FIRST_MARK) {
      space = address == ST_PERF_USER_MARK ? user_space : ST_PERF_KERNEL_SPACE;
      is_innermost = true;
      continue;
    }
    address -= !is_innermost && address;
    is_innermost = false;
    uint32_t number = st_stack_table_known(s->table, space, address);
    if (!number)
      s->unknown[s->unknown_count++] =
          (struct st_perf_frame_key){space, address};
    numbers[--at] = number;
    depth++;
  }
  memmove(numbers, numbers + at, depth * sizeof *numbers);
  return depth;
}

/* --- Packets ------------------------------------------------------------- */

static enum st_perf_stop write_sample(const struct st_perf_sampler* s,
                                      uint32_t stack, uint32_t skipped,
                                      struct st_message* root) {
  const struct st_perf_record* r = &s->record;
  struct st_message m;
  st_message_append_varint(root, TIMESTAMP, r->time);
  st_message_append_varint(root, SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE);
  st_message_begin_nested(root, &m, PERF_SAMPLE);
  st_message_append_varint(&m, CPU, s->cpu);
  st_message_append_varint(&m, PID, r->pid);
  st_message_append_varint(&m, TID, r->tid);
  st_message_append_varint(&m, CPU_MODE, r->misc & ST_PERF_MODE);
  st_message_append_varint(&m, TIMEBASE_COUNT, st_perf_word(r->counts, 0));
  for (uint32_t i = 1; i < r->count_size; i++)
    st_message_append_varint(&m, FOLLOWER_COUNTS, st_perf_word(r->counts, i));
  if (stack)
    st_message_append_varint(&m, CALLSTACK, stack);
  if (s->unwind_error && stack)
    st_message_append_varint(&m, UNWIND_ERROR, s->unwind_error);
  if (skipped)
    st_message_append_varint(&m, SKIPPED_REASON, skipped);
  st_message_finalize(&m);
  return ST_PERF_PACKET;
}

static enum st_perf_stop skip(struct st_perf_sampler* s, uint32_t reason,
                              struct st_message* root) {
  s->skipped += reason != SKIPPED_NOT_IN_SCOPE;
  return write_sample(s, 0, reason, root);
}

static enum st_perf_stop handle_stack(struct st_perf_sampler* s, uint64_t space,
                                      struct st_message* root) {
  uint32_t numbers[ST_PERF_MAX_DEPTH];
  uint32_t depth = number_frames(s, space, numbers);
  if (s->unknown_count)
    return s->asked == ST_PERF_NEW_FRAMES ? skip(s, SKIPPED_UNWIND, root)
                                          : ST_PERF_NEW_FRAMES;
  uint32_t stack = depth ? st_stack_table_stack(s->table, numbers, depth) : 0;
  if (depth && !stack)
    return skip(s, SKIPPED_UNWIND, root);
  return write_sample(s, stack, NOT_SKIPPED, root);
}

static enum st_perf_stop handle_sample(struct st_perf_sampler* s,
                                       struct st_message* root) {
  const struct st_perf_record* r = &s->record;
  uint64_t space = 0;
  bool in_scope = false;
  if (!s->members)
    return write_sample(s, 0, NOT_SKIPPED, root);
  bool is_decided = find_process(s, r->pid, &space, &in_scope);
  if (!is_decided || !st_address_table_find(&s->threads, key_of(r->tid))) {
    remember(&s->threads, r->tid, r->pid);
    if (!s->asked)
      return ST_PERF_NEW_THREAD;
  }
  if (!in_scope || (!r->stack_size && !r->registers))
    return skip(s, SKIPPED_NOT_IN_SCOPE, root);
  if (s->kernel_only && (r->misc & ST_PERF_MODE) == USER_MODE)
    return write_sample(s, 0, NOT_SKIPPED, root);
  if (s->max_stack_bytes && s->stack_bytes > s->max_stack_bytes)
    return skip(s, SKIPPED_ENQUEUE, root);
  if (r->registers && !unwind(s, space))
    return ST_PERF_NEW_CODE;
  return handle_stack(s, space, root);
}

/* --- Other records ------------------------------------------------------- */

static enum st_perf_stop handle_name(struct st_perf_sampler* s) {
  const struct st_perf_record* r = &s->record;
  forget(&s->threads, r->tid);
  if (r->misc & ST_PERF_EXEC)
    forget(&s->processes, r->pid);
  return ST_PERF_CHANGE;
}

static enum st_perf_stop handle_exit(struct st_perf_sampler* s) {
  const struct st_perf_record* r = &s->record;
  forget(&s->threads, r->tid);
  if (r->tid == r->pid)
    forget(&s->processes, r->pid);
  return ST_PERF_CHANGE;
}

/* Handles a record that is no sample.  Returns ST_PERF_DONE if the owner need
 * not see it. */
static enum st_perf_stop handle_other(struct st_perf_sampler* s) {
  const struct st_perf_record* r = &s->record;
  uint64_t space;
  bool in_scope = true;
  switch (r->type) {
    case ST_PERF_NAME:
      return handle_name(s);
    case ST_PERF_EXIT:
      return handle_exit(s);
    case ST_PERF_FORK:
      return r->pid == r->parent ? ST_PERF_DONE : ST_PERF_CHANGE;
    case ST_PERF_MAPPING:
      find_process(s, r->pid, &space, &in_scope);
      return in_scope ? ST_PERF_CHANGE : ST_PERF_DONE;
    case ST_PERF_LOST:
    case ST_PERF_LOST_SAMPLES:
    case ST_PERF_THROTTLE:
      return ST_PERF_KERNEL_LOSS;
    default:
      return ST_PERF_DONE;
  }
}

static enum st_perf_stop handle(struct st_perf_sampler* s,
                                struct st_message* root) {
  if (s->record.type != ST_PERF_SAMPLE)
    return handle_other(s);
  return handle_sample(s, root);
}

/* Reads the next record into s->record, unless the owner was asked about the
 * present one.  Returns false at the end. */
static bool open_record(struct st_perf_sampler* s) {
  if (s->asked)
    return true;
  if (s->next == s->entry_count)
    return false;
  const struct st_perf_entry* e = &s->entries[s->next++];
  const uint8_t* at = e->at;
  s->cpu = e->cpu;
  st_perf_record_next(&at, e->at + e->size, s->members, &s->record);
  s->unwind_error = 0;
  s->stack_bytes +=
      s->record.stack_size * sizeof(uint64_t) + s->record.memory_size;
  return true;
}

enum st_perf_stop st_perf_sampler_next(struct st_perf_sampler* s,
                                       struct st_message* root) {
  while (open_record(s)) {
    enum st_perf_stop stop = handle(s, root);
    bool is_question = stop == ST_PERF_NEW_THREAD || stop == ST_PERF_NEW_CODE ||
                       stop == ST_PERF_NEW_FRAMES;
    s->asked = is_question ? stop : ST_PERF_DONE;
    if (stop != ST_PERF_DONE)
      return stop;
  }
  return ST_PERF_DONE;
}
