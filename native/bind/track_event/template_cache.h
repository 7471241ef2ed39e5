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
  uint64_t number; /* The template's number; 0 if the entry is empty. */
  uint32_t epoch;
  uint32_t size, capacity;
  uint8_t* block;
  uint32_t iids[MAX_TEMPLATE_VALUES];
};

struct template_cache {
  struct template_entry entries[TEMPLATE_CACHE_ENTRIES];
};

/* Returns the cache entry for a template.  The caller has to compare its
 * number, because another template may occupy the entry. */
static inline struct template_entry* template_cache_entry(
    struct template_cache* c, const EventTemplateObject* template) {
  return &c->entries[template->number & (TEMPLATE_CACHE_ENTRIES - 1)];
}

/* Frees the template cache, which may be NULL. */
void template_cache_free(struct template_cache* cache);
