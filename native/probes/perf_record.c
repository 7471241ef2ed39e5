#include "probes/perf_record.h"

#include <string.h>

#include "probes/perf_register.h"

enum { TRAILER = 16, MAPPING_IDS = 24, PROTECTION_AND_FLAGS = 8, ABI_64 = 2 };

/* The part of a record that was not read yet. */
struct body {
  const uint8_t* at;
  const uint8_t* end;
};

static size_t left(const struct body* b) {
  return (size_t)(b->end - b->at);
}

/* Moves behind the next bytes, and returns them; NULL if there are fewer. */
static const uint8_t* take(struct body* b, size_t size) {
  if (left(b) < size)
    return NULL;
  b->at += size;
  return b->at - size;
}

static bool take_u32(struct body* b, uint32_t* value) {
  const uint8_t* p = take(b, sizeof *value);
  if (p)
    memcpy(value, p, sizeof *value);
  return p;
}

static bool take_u64(struct body* b, uint64_t* value) {
  const uint8_t* p = take(b, sizeof *value);
  if (p)
    memcpy(value, p, sizeof *value);
  return p;
}

uint64_t st_perf_word(const uint8_t* words, uint32_t index) {
  uint64_t word;
  memcpy(&word, words + (size_t)index * sizeof word, sizeof word);
  return word;
}

/* Takes a number n, and n words. */
static bool take_words(struct body* b, const uint8_t** words, uint32_t* count) {
  uint64_t n;
  if (!take_u64(b, &n) || n > left(b) / sizeof n)
    return false;
  *count = (uint32_t)n;
  *words = take(b, (size_t)n * sizeof n);
  return true;
}

/* Takes the text up to the first NUL; all that is left belongs to it. */
static void take_text(struct body* b, struct st_perf_record* r) {
  const void* nul = memchr(b->at, 0, left(b));
  r->text = (const char*)b->at;
  r->text_size =
      (uint32_t)(nul ? (size_t)((const uint8_t*)nul - b->at) : left(b));
}

static bool take_thread(struct body* b, struct st_perf_record* r) {
  return take_u32(b, &r->pid) && take_u32(b, &r->tid);
}

static bool take_registers(struct body* b, struct st_perf_record* r) {
  uint64_t abi;
  const uint8_t* words = NULL;
  if (!take_u64(b, &abi) ||
      (abi && !(words = take(b, ST_PERF_REGISTERS * sizeof(uint64_t)))))
    return false;
  r->registers = abi == ABI_64 ? words : NULL;
  return true;
}

static bool take_memory(struct body* b, struct st_perf_record* r) {
  uint64_t size, valid = 0;
  if (!take_u64(b, &size) || size > left(b))
    return false;
  r->memory = take(b, (size_t)size);
  if (size && (!take_u64(b, &valid) || valid > size))
    return false;
  r->memory_size = (uint32_t)valid;
  return true;
}

static bool read_sample(struct body* b, unsigned members,
                        struct st_perf_record* r) {
  return take_thread(b, r) && take_u64(b, &r->time) &&
         take_words(b, &r->counts, &r->count_size) && r->count_size &&
         (!(members & ST_PERF_CALL_CHAIN) ||
          take_words(b, &r->stack, &r->stack_size)) &&
         (!(members & ST_PERF_USER_STACK) ||
          (take_registers(b, r) && take_memory(b, r)));
}

static bool read_mapping(struct body* b, struct st_perf_record* r) {
  uint32_t flags;
  if (!take_thread(b, r) || !take_u64(b, &r->address) ||
      !take_u64(b, &r->size) || !take_u64(b, &r->offset) ||
      !take(b, MAPPING_IDS) || !take_u32(b, &r->protection) ||
      !take_u32(b, &flags))
    return false;
  take_text(b, r);
  return true;
}

static bool read_name(struct body* b, struct st_perf_record* r) {
  if (!take_thread(b, r))
    return false;
  take_text(b, r);
  return true;
}

static bool read_fork(struct body* b, struct st_perf_record* r) {
  return take_u32(b, &r->pid) && take_u32(b, &r->parent) &&
         take_u32(b, &r->tid);
}

static bool read_lost(struct body* b, struct st_perf_record* r) {
  uint64_t id;
  return (r->type == ST_PERF_LOST_SAMPLES || take_u64(b, &id)) &&
         take_u64(b, &r->lost);
}

/* Reads the thread and the time at the end of each record but samples. */
static bool read_trailer(struct body* b, struct st_perf_record* r) {
  if (left(b) < TRAILER)
    return false;
  b->end -= TRAILER;
  r->time = st_perf_word(b->end, 1);
  return true;
}

static bool read_other(struct body* b, struct st_perf_record* r) {
  if (!read_trailer(b, r))
    return false;
  switch (r->type) {
    case ST_PERF_MAPPING:
      return read_mapping(b, r);
    case ST_PERF_NAME:
      return read_name(b, r);
    case ST_PERF_FORK:
    case ST_PERF_EXIT:
      return read_fork(b, r);
    case ST_PERF_LOST:
    case ST_PERF_LOST_SAMPLES:
      return read_lost(b, r);
    default:
      return true;
  }
}

bool st_perf_record_next(const uint8_t** at, const uint8_t* end,
                         unsigned members, struct st_perf_record* record) {
  struct body b = {*at, end};
  uint32_t type;
  uint16_t misc, size;
  *record = (struct st_perf_record){.type = ST_PERF_DAMAGED};
  if (b.at == b.end)
    return false;
  *at = end;
  if (left(&b) < ST_PERF_HEADER)
    return true;
  memcpy(&type, b.at, sizeof type);
  memcpy(&misc, b.at + 4, sizeof misc);
  memcpy(&size, b.at + 6, sizeof size);
  if (size < ST_PERF_HEADER || size > left(&b))
    return true;
  b = (struct body){b.at + ST_PERF_HEADER, b.at + size};
  *at = b.end;
  record->type = type <= UINT16_MAX ? (uint16_t)type : UINT16_MAX;
  record->misc = misc;
  if (!(type == ST_PERF_SAMPLE ? read_sample(&b, members, record)
                               : read_other(&b, record)))
    *record = (struct st_perf_record){.type = ST_PERF_DAMAGED};
  return true;
}
