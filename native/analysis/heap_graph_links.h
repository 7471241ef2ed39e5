/* Links of a heap graph: what follows from its packets when all are read.
 *
 * The names of fields and classes, the objects that can be reached from a root,
 * the memory that objects hold outside of the heap, superclasses, and the
 * distance of each object to its next root.
 *
 * Native memory is found through the runtime's cleaner of an object:
 *
 *   sun.misc.Cleaner ──referent──> object that gets the size
 *        └──thunk──> CleanerThunk ──this$0──> NativeAllocationRegistry (size)
 */
#pragma once

#include "importer.h"

/* Returns the rows of an object or class of the graph; adds them if they are
 * new. */
uint32_t st_heap_object_row(struct st_importer* m, struct st_heap_graph* g,
                            uint64_t id);
uint32_t st_heap_class_row(struct st_importer* m, struct st_heap_graph* g,
                           uint64_t id);
/* Completes the graph's rows, and makes the graph empty. */
void st_heap_graph_complete(struct st_importer* m, struct st_heap_graph* g);
/* Sets the superclasses and distances of all graphs. */
void st_heap_graphs_link(struct st_importer* m);
/* Calls `each` with every row that the object refers to.  The referents of weak
 * and similar references are left out: they keep nothing alive. */
void st_heap_children(struct st_importer* m, uint32_t object,
                      void (*each)(struct st_importer*, uint32_t child,
                                   int64_t value),
                      int64_t value);
