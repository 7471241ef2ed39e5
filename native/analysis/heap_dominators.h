/* Dominators of heap graphs: what each class retains.
 *
 * An object dominates another one if every path from a root to that one leads
 * through it.  It retains what it dominates: all that would be free without it.
 *
 *   root ─> a ─> b ─> d        d is dominated by a, not by b or c
 *           └──> c ──┘         a retains a, b, c, d
 *
 * The retained size of a class is the sum over its objects, without those that
 * another object of the class dominates, which would count twice.
 *
 * Algorithm: T. Lengauer, R. Tarjan, "A fast algorithm for finding dominators in
 * a flowgraph", 1979, with simple path compression; without recursion.  All
 * graphs of the trace are one: they share the node above their roots.
 *
 * Memory: 48 bytes an object and 8 bytes a reference, while it runs.
 */
#pragma once

#include "importer.h"

/* A class of one graph, with its reachable objects. */
struct st_heap_retained {
  uint32_t class_row, upid;
  int64_t ts;
  int64_t objects, size, retained; /* Sizes in bytes. */
};

struct st_heap_classes {
  struct st_heap_retained* rows; /* To be freed. */
  uint32_t count;
};

/* Returns false when out of memory.  The importer has finished. */
bool st_heap_retained(struct st_importer* m, struct st_heap_classes* classes);
