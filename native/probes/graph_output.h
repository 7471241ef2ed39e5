/* Graph output: an object graph as parts of HeapGraph packets, into a pipe.
 *
 *   | size, 4 bytes | fields of HeapGraph | size | fields | ... | 0 |
 *
 * The reader of the pipe adds the fields `pid`, `continued` and `index`, and
 * writes a packet for each part.  The last size is 0: the graph is complete.
 *
 *   HeapGraph         2 objects, 4 field_names, 7 roots, 9 types
 *   HeapGraphObject   1 id, 2 type_id, 3 self_size, 4 reference_field_id*,
 *                     5 reference_object_id*, both packed
 *   InternedString    1 iid, 2 str
 *   HeapGraphRoot     1 object_ids* packed, 2 root_type
 *   HeapGraphType     1 id, 3 class_name
 *
 * Source: Perfetto's protos/perfetto/trace/profiling/heap_graph.proto.  Names
 * of fields and types follow the objects: a reader gives a name to the
 * references that it has seen already.
 *
 * Writing blocks while the pipe is full.  No malloc (mapped_array.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_GRAPH_MAX_REFERENCES = 1 << 14, /* Of a message; see st_graph_object(). */
  ST_GRAPH_MAX_NAME = 1024,          /* Longer names are cut. */
};

/* HeapGraphRoot.Type */
enum {
  ST_ROOT_JNI_GLOBAL = 1,
  ST_ROOT_JAVA_FRAME = 3,
  ST_ROOT_STICKY_CLASS = 5
};

struct st_graph_output {
  int fd;
  uint8_t* data;
  size_t size;
  bool failed; /* The reader is gone; nothing more is written. */
};

struct st_graph_reference {
  uint32_t object, field;
};

/* Returns false when out of memory. */
bool st_graph_output_init(struct st_graph_output* o, int fd);
/* Adds an object with at most ST_GRAPH_MAX_REFERENCES references. */
void st_graph_object(struct st_graph_output* o, uint32_t object, uint32_t type,
                     uint64_t size, const struct st_graph_reference* references,
                     size_t count);
void st_graph_type(struct st_graph_output* o, uint32_t type, const char* name,
                   size_t size);
void st_graph_field(struct st_graph_output* o, uint32_t field, const char* name,
                    size_t size);
void st_graph_root(struct st_graph_output* o, uint32_t object, uint32_t kind);
/* Writes the rest, and the end. */
void st_graph_finish(struct st_graph_output* o);
