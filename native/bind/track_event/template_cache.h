/* The template cache of one thread: encoded blocks, keyed by template.
 *
 * Entries are found by the template's number, which is never used again, so an
 * entry needs no reference to its template.  template_blocks.h fills it.
 *
 * Life cycle: made with the first event of a template on the thread, owned by
 * its thread_sequence.
 */
#pragma once

#include "bind/track_event/event_template_object.h"

enum { TEMPLATE_CACHE_ENTRIES = 256 };

struct template_entry {
  /* The number of the cached template; 0 if the entry is empty. */
  uint64_t number;
  uint32_t epoch;
  uint32_t size, capacity;
  uint8_t* block;
  uint32_t iids[MAX_TEMPLATE_VALUES];
};

struct template_cache {
  struct template_entry entries[TEMPLATE_CACHE_ENTRIES];
};

/* Returns the cache entry where the template belongs.  Another template may
 * occupy the entry, so the caller has to compare the numbers of the entry and
 * of the template. */
static inline struct template_entry* template_cache_entry(
    struct template_cache* c, const EventTemplateObject* template) {
  return &c->entries[template->number & (TEMPLATE_CACHE_ENTRIES - 1)];
}

/* Frees a template cache, which may be NULL. */
void template_cache_free(struct template_cache* cache);
