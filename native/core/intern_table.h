/* Intern table: maps the strings of one sequence to interning ids, by value.
 *
 * A sequence writes a string once, with an id, and afterwards writes only the
 * id.  The table returns the id of a string, and whether it is new.  Each kind
 * of string (event names, categories, ...) has its own ids, which start at 1
 * and restart when the incremental state is cleared.
 *
 * Bounded: at most ST_INTERN_MAX_STRINGS entries and ST_INTERN_MAX_BYTES of
 * string data; strings above ST_INTERN_MAX_LENGTH are never stored.  Beyond
 * these limits a lookup of a new string returns 0 and the caller writes the
 * string inline, so ten million distinct names use no more memory.
 *
 *   slots (open addressing, power of two)      arena
 *   | hash, kind, iid, offset, length | ...    | bytes of all strings |
 *
 * Clearing takes O(slots), or no time if the table is empty.  Memory starts at
 * zero and grows by doubling.  One thread owns a table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_INTERN_MAX_STRINGS = 4096,
  ST_INTERN_MAX_BYTES = 256 * 1024,
  ST_INTERN_MAX_LENGTH = 256,
};

enum st_intern_kind {
  ST_INTERN_EVENT_NAME,
  ST_INTERN_CATEGORY,
  ST_INTERN_ANNOTATION_NAME,
  ST_INTERN_ANNOTATION_VALUE,
  ST_INTERN_SOURCE_LOCATION,
  ST_INTERN_LOG_BODY,
  ST_INTERN_KINDS,
};

struct st_intern_slot {
  uint32_t hash;
  uint32_t offset;
  uint16_t length;
  uint16_t iid; /* The interning id of the string; 0 if the slot is empty. */
  uint8_t kind;
};

struct st_intern_table {
  struct st_intern_slot* slots;
  uint32_t capacity, count;
  uint8_t* arena;
  uint32_t arena_size, arena_capacity;
  uint16_t last_iid[ST_INTERN_KINDS];
};

void st_intern_init(struct st_intern_table* t);
void st_intern_destroy(struct st_intern_table* t);

/* Returns the interning id of the string.  Returns 0 if the caller must write
 * the string inline.  If *is_new is set, the caller has to write the string and
 * its id into the packet's interned_data. */
uint32_t st_intern(struct st_intern_table* t, enum st_intern_kind kind,
                   const void* data, size_t size, bool* is_new);

/* Returns the interning id of the string, or 0 if the string is not stored.
 * Stores a hash of the kind and the string in *hash. */
uint32_t st_intern_find(const struct st_intern_table* t,
                        enum st_intern_kind kind, const void* data, size_t size,
                        uint32_t* hash);

/* Returns an unused interning id for a string that is not stored in this table,
 * but by the caller.  Returns 0 if no id is left. */
uint32_t st_intern_take_id(struct st_intern_table* t, enum st_intern_kind kind);

void st_intern_clear(struct st_intern_table* t);
