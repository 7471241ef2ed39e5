#include "hooks/code_records.h"

#include <opcode.h>

#include "core/clock.h"
#include "core/identity_cache.h"
#include "hooks/call_sites.h"
#include "hooks/code_filter.h"
#include "hooks/python_layout.h"

enum {
  CHUNK = 1024,
  SLOTS = 4 * ST_MAX_CODE_RECORDS,
};

static const enum st_code_state kFirstState =
    ST_CALLS_ARE_REPORTED ? ST_CODE_ON : ST_CODE_OFF;
static const uint64_t kFirstReport =
    ST_CALLS_ARE_REPORTED ? 0 : ST_BEGINS_UNKNOWN;
/* `reported_since` of code that the sampling thread is arming. */
#define ARMING (ST_BEGINS_UNKNOWN - 1)

/* The records are in chunks of memory that never move.  The hash table `slots`
 * maps a code object to its record's number + 1, or 0.
 *
 * Threads with the GIL write records and table.  The sampling thread reads both
 * without the GIL.  A record and the pointer to its chunk are complete before
 * `count` is increased with release order, so a thread that has loaded `count`
 * with acquire order may read them.  `slots` is set with release order, after
 * the table was filled with zeros.  Each entry of the table is set with release
 * order, too.  The sampling thread loads both with acquire order. */
static struct st_code_record* _Atomic chunks[ST_MAX_CODE_RECORDS / CHUNK];
static _Atomic uint32_t count;
static _Atomic uint32_t* _Atomic slots;

/* From here on: functions that need no GIL. */

struct st_code_record* st_code_record_at(uint32_t index) {
  if (index >= atomic_load_explicit(&count, memory_order_acquire))
    return NULL;
  return &atomic_load_explicit(&chunks[index / CHUNK],
                               memory_order_relaxed)[index % CHUNK];
}

static uint32_t home_of(uint64_t code) {
  return st_identity_hash((const void*)(uintptr_t)code) & (SLOTS - 1);
}

struct st_code_record* st_code_record_find(uint64_t code) {
  _Atomic uint32_t* table = atomic_load_explicit(&slots, memory_order_acquire);
  if (!table)
    return NULL;
  for (uint32_t i = home_of(code);; i = (i + 1) & (SLOTS - 1)) {
    uint32_t number = atomic_load_explicit(&table[i], memory_order_acquire);
    if (!number)
      return NULL;
    struct st_code_record* r = st_code_record_at(number - 1);
    if (r && (uint64_t)(uintptr_t)r->code == code)
      return r;
  }
}

static bool can_be_armed(const struct st_code_record* r) {
  return ST_CALLS_ARE_REPORTED && r &&
         atomic_load_explicit(&r->state, memory_order_relaxed) == ST_CODE_OFF &&
         !atomic_load_explicit(&r->armed, memory_order_relaxed);
}

/* If a thread meanwhile makes the interpreter stop its reports again, begins stay
 * unknown. */
void st_code_record_arm(struct st_code_record* r) {
  if (!can_be_armed(r))
    return;
  atomic_store(&r->armed, true);
  uint64_t unknown = ST_BEGINS_UNKNOWN, arming = ARMING;
  atomic_compare_exchange_strong(&r->reported_since, &unknown, ARMING);
  st_python_rearm(r->code);
  atomic_compare_exchange_strong(&r->reported_since, &arming, st_boottime_ns());
}

void st_code_record_publish(const struct st_code_record* r) {
  struct st_function_totals* t = st_totals_at(r->totals);
  if (!t)
    return;
  atomic_store_explicit(&t->calls, r->calls, memory_order_relaxed);
  atomic_store_explicit(&t->uncounted, r->was_off, memory_order_relaxed);
}

/* From here on: functions that need the GIL. */

void st_code_record_stops_reports(struct st_code_record* r) {
  atomic_store(&r->reported_since, ST_BEGINS_UNKNOWN);
}

static bool takes_time(uint8_t opcode) {
  switch (opcode) {
    case CALL:
#ifdef CALL_KW
    case CALL_KW:
#endif
    case CALL_FUNCTION_EX:
    case FOR_ITER:
    case IMPORT_NAME:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case SEND:
    case YIELD_VALUE:
#ifdef BEFORE_WITH
    case BEFORE_WITH:
#endif
      return true;
    default:
      return false;
  }
}

/* Returns whether a code object contains neither calls nor loops, so that a
 * call of it cannot take long. */
static bool is_leaf(PyObject* code) {
  PyObject* bytes = PyCode_GetCode((PyCodeObject*)code);
  if (!bytes) {
    PyErr_Clear();
    return false;
  }
  const uint8_t* b = (const uint8_t*)PyBytes_AS_STRING(bytes);
  Py_ssize_t size = PyBytes_GET_SIZE(bytes), i = 0;
  while (i < size && !takes_time(b[i]))
    /* Inline caches, which follow instructions, are skipped like instructions
     * that take no time. */
    i += 2;
  Py_DECREF(bytes);
  return i >= size;
}

static enum st_code_state first_state(PyObject* code) {
  if (!st_code_accepted(code))
    return ST_CODE_NEVER;
  return is_leaf(code) ? ST_CODE_OFF : kFirstState;
}

static struct st_code_record* new_record(void) {
  uint32_t number = atomic_load_explicit(&count, memory_order_relaxed);
  if (number == ST_MAX_CODE_RECORDS)
    return NULL;
  struct st_code_record* chunk = chunks[number / CHUNK];
  if (!chunk) {
    chunk = PyMem_RawCalloc(CHUNK, sizeof *chunk);
    atomic_store_explicit(&chunks[number / CHUNK], chunk, memory_order_relaxed);
  }
  return chunk ? &chunk[number % CHUNK] : NULL;
}

static bool make_table(void) {
  if (!slots)
    atomic_store_explicit(&slots, PyMem_RawCalloc(SLOTS, sizeof *slots),
                          memory_order_release);
  return slots != NULL;
}

static void add_to_table(uint64_t code, uint32_t number) {
  uint32_t i = home_of(code);
  while (slots[i])
    i = (i + 1) & (SLOTS - 1);
  atomic_store_explicit(&slots[i], number + 1, memory_order_release);
}

/* Returns the bytes of a str, which live as long as the str. */
static const char* text_of(PyObject* str) {
  const char* text = PyUnicode_AsUTF8(str);
  if (!text)
    PyErr_Clear(); /* A path that is no UTF-8. */
  return text ? text : "?";
}

struct st_code_record* st_code_record_get(PyObject* code) {
  uint64_t address = (uint64_t)(uintptr_t)code;
  struct st_code_record* r = st_code_record_find(address);
  if (ST_LIKELY(r))
    return r;
  enum st_code_state state = first_state(code); /* This may run Python code. */
  r = st_code_record_find(address);
  if (r || !make_table())
    return r;
  r = new_record();
  if (!r) {
    st_hooks.counts.without_record++;
    return NULL;
  }
  r->code = Py_NewRef(code);
  r->name = text_of(st_code_name(code));
  r->file = text_of(((PyCodeObject*)code)->co_filename);
  r->was_off = state == ST_CODE_OFF;
  r->reported_since = kFirstReport;
  r->starter = st_code_is_starter(code);
  r->may_block =
      r->starter || (state != ST_CODE_NEVER && st_code_may_block(code));
  atomic_store_explicit(&r->state, state, memory_order_relaxed);
  uint32_t number = atomic_load_explicit(&count, memory_order_relaxed);
  atomic_store_explicit(&count, number + 1, memory_order_release);
  add_to_table(address, number);
  return r;
}

uint32_t st_code_records_count(void) {
  return atomic_load(&count);
}

static void restart(struct st_code_record* r) {
  *r = (struct st_code_record){.code = r->code,
                               .name = r->name,
                               .file = r->file,
                               .state = kFirstState,
                               .was_off = kFirstState == ST_CODE_OFF,
                               .reported_since = kFirstReport,
                               .may_block = r->may_block,
                               .reports_calls = r->reports_calls};
}

void st_code_records_restart(void) {
  for (uint32_t i = 0; i < st_code_records_count(); i++) {
    struct st_code_record* r = st_code_record_at(i);
    if (r->state != ST_CODE_NEVER)
      restart(r);
  }
}

/* Removes all records.  The references to code objects are dropped last,
 * because that may run Python code. */
void st_code_records_clear(void) {
  uint32_t size = atomic_exchange(&count, 0);
  PyMem_RawFree((void*)atomic_exchange(&slots, NULL));
  for (uint32_t i = 0; i < size; i += CHUNK) {
    struct st_code_record* chunk = atomic_exchange(&chunks[i / CHUNK], NULL);
    for (uint32_t k = 0; k < CHUNK && i + k < size; k++)
      Py_CLEAR(chunk[k].code);
    PyMem_RawFree(chunk);
  }
}
