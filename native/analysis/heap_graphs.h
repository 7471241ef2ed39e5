/* Heap graphs: the objects of a process and the references between them, from
 * HeapGraph packets, as Android's runtime writes them.
 *
 *   object ──reference──> object           rows of heap_graph_object and
 *      └──> class ──> superclass           heap_graph_reference, heap_graph_class
 *
 * A graph consists of several packets of a sequence; all but the last one have
 * `continued` set.  Ids in the packets are the profiler's own; rows are added
 * when an id is first mentioned.  Names of classes and fields may come after the
 * objects, so they are set when the graph is complete:
 *
 *   packets ─> st_parse_heap_graph: rows ─> complete: sizes, names, classes,
 *   roots, native sizes ─> st_finish_heap_graphs: superclasses, distances
 *
 * References of an object without field names have those of its class, then
 * those of the superclass, and so on.
 *
 * Limits: MAX_EMPTY_CLASSES superclasses in a row without fields.
 */
#pragma once

#include "keys.h"
#include "string_pool.h"

/* A field of a class, by its id in the graph.  Only the references that came
 * before the name get it: `uses` is the number of those. */
struct st_heap_field {
  st_string name, type;
  uint32_t uses;
};

/* A class, as the packet defines it. */
struct st_heap_class {
  uint64_t id, location, size, superclass, loader;
  st_string name;
  uint32_t first_field, field_count;
  uint8_t kind;
  bool has_location;
};

/* An object whose size, or whose field names, are those of its class. */
struct st_heap_deferred {
  uint32_t object;
  uint64_t class_id;
};

/* A graph whose last packet has not been parsed. */
struct st_heap_graph {
  bool is_open, has_index;
  uint64_t index, last_object;
  uint32_t upid;
  int64_t ts;
  uint8_t heap_type;
  /* The profiler's ids to rows + 1, or to indexes + 1. */
  struct st_map object_rows, class_rows, field_numbers, class_numbers,
      locations, registry_sizes;
  ST_ARRAY(uint32_t) objects; /* Rows. */
  ST_ARRAY(struct st_heap_field) fields;
  ST_ARRAY(struct st_heap_class) classes;
  ST_ARRAY(uint64_t) class_fields;
  ST_ARRAY(struct st_heap_use {
    uint32_t reference;
    uint64_t field;
  })
  uses;
  ST_ARRAY(struct st_heap_deferred) unsized;
  ST_ARRAY(struct st_heap_deferred) unnamed;
  ST_ARRAY(struct st_heap_root {
    uint64_t object;
    uint32_t type;
  })
  roots;
  ST_ARRAY(uint64_t) vm_roots; /* Objects that the runtime never frees. */
  ST_ARRAY(int64_t) sizes;     /* Of NativeAllocationRegistry objects. */
};

/* A class that has a superclass: the superclass's row, and the number of classes
 * that existed then. */
struct st_heap_superclass {
  uint32_t row, classes;
};

/* The numbers of HeapGraphType.Kind and HeapGraphRoot.Type. */
enum { ST_HEAP_KINDS = 12, ST_HEAP_ROOT_TYPES = 15 };

struct st_heap_graphs {
  struct st_heap_texts {
    st_string referent, kinds[ST_HEAP_KINDS], roots[ST_HEAP_ROOT_TYPES];
  } texts;
  struct st_map by_sequence; /* Number of a graph + 1. */
  ST_ARRAY(struct st_heap_graph) graphs;
  /* Classes by name and location, in all graphs. */
  struct st_keys class_keys, superclass_keys;
  ST_ARRAY(uint32_t) class_rows; /* The last one; ST_NO_ROW if none. */
  ST_ARRAY(struct st_heap_superclass) superclasses;
  ST_ARRAY(uint32_t) roots;  /* Rows, in all graphs. */
  ST_ARRAY(uint32_t) queue;  /* Reused. */
  struct st_heap_tree* tree; /* heap_flamegraph.c; NULL until it is needed. */
  struct st_map links;       /* Of the graph: object and field to row + 1. */
  /* Of the object that is being read. */
  ST_ARRAY(uint64_t) field_ids;
  ST_ARRAY(uint64_t) owned_ids;
};

void st_heap_graphs_free(struct st_heap_graphs* h);
void st_heap_tree_free(struct st_heap_tree* t);
/* Frees what a graph holds, and makes it empty. */
void st_heap_graph_clear(struct st_heap_graph* g);
