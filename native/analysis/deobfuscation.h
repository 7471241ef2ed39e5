/* Deobfuscation: the original names of Java classes, fields and methods.
 *
 * A DeobfuscationMapping says what the names of a package were before the
 * program was obfuscated.  All mappings apply to the whole trace:
 *
 *   mappings ─> names: (what, package, obfuscated name) ─> original name
 *   rows of heap_graph_class, heap_graph_reference, stack_profile_frame
 *        └─ looked up once each, at the end of the trace
 *
 * The package of a class or frame follows from the path of its file, else from
 * the user id of its process, by the table package_list.  If several mappings
 * name the same thing, the last one counts.
 */
#pragma once

#include "keys.h"
#include "storage.h"

struct st_original_name {
  st_string name;
  uint32_t order; /* The later of two names counts. */
};

struct st_kept_mapping {
  const uint8_t* data;
  size_t size;
};

/* The process of a class of a heap graph. */
struct st_class_owner {
  uint32_t row, upid;
};

struct st_deobfuscation {
  ST_ARRAY(struct st_kept_mapping) mappings;
  struct st_keys keys;
  ST_ARRAY(struct st_original_name) names; /* By the keys' numbers. */
  uint32_t order;
  ST_ARRAY(char) text;          /* The name that is being made. */
  struct st_map frame_orders;   /* Frame to the order of its name + 1. */
  struct st_map seen_callsites; /* Callsite and package to 1. */
  struct st_map packages;       /* User id to package_name. */
  ST_ARRAY(struct st_class_owner) owners;
};

/* Returns the package that a path belongs to; 0 if it is unknown. */
st_string st_package_of_path(struct st_storage* s, const char* path,
                             size_t size);
void st_deobfuscation_free(struct st_deobfuscation* d);
