/* Reads the packets of heap graphs: rows of objects, references and classes. */
#include "heap_graphs.h"

#include <stdlib.h>
#include <string.h>

#include "heap_graph_links.h"
#include "messages.h"

enum {
  /* HeapGraph */
  PID = 1,
  OBJECTS = 2,
  FIELD_NAMES = 4,
  CONTINUED = 5,
  INDEX = 6,
  ROOTS = 7,
  LOCATIONS = 8,
  CLASSES = 9,
  /* HeapGraphObject */
  OBJECT_ID = 1,
  OBJECT_CLASS = 2,
  OBJECT_SIZE = 3,
  OBJECT_FIELDS = 4,
  OBJECT_REFERENCES = 5,
  OBJECT_BASE = 6,
  OBJECT_DELTA = 7,
  OBJECT_REGISTRY_SIZE = 8,
  OBJECT_HEAP = 9,
  OBJECT_INTERNAL = 10,
  HEAP_ZYGOTE = 2,
  HEAP_BOOT_IMAGE = 3,
  /* HeapGraphType */
  CLASS_ID = 1,
  CLASS_LOCATION = 2,
  CLASS_NAME = 3,
  CLASS_SIZE = 4,
  CLASS_SUPERCLASS = 5,
  CLASS_FIELDS = 6,
  CLASS_KIND = 7,
  CLASS_LOADER = 8,
  /* InternedString, HeapGraphRoot */
  IID = 1,
  TEXT = 2,
  ROOT_OBJECTS = 1,
  ROOT_TYPE = 2,
};

static st_string text(struct st_importer* m, const char* t) {
  return st_intern(&m->storage, t);
}

static struct st_heap_graph* graph_of(struct st_importer* m,
                                      uint32_t sequence) {
  struct st_heap_graphs* h = &m->heap_graphs;
  uint32_t* number = st_map_at(&h->by_sequence, sequence);
  if (!*number) {
    *ST_PUSH(&h->graphs) = (struct st_heap_graph){0};
    *number = h->graphs.size;
  }
  struct st_heap_graph* g = &h->graphs.data[*number - 1];
  g->is_open = true;
  return g;
}

static void count_for(struct st_importer* m, uint32_t upid, const char* name) {
  st_increment_stat(m, name, upid, "error", "trace", 1);
}

static void check_index(struct st_importer* m, struct st_heap_graph* g,
                        uint64_t index) {
  uint64_t expected = g->has_index ? g->index + 1 : 0;
  if (index != expected)
    count_for(m, g->upid, "heap_graph_missing_packet");
  g->has_index = true;
  g->index = index;
}

/* Returns false if the graph's packets are of another process or time: the last
 * packet of a graph was lost. */
static bool check_owner(struct st_importer* m, struct st_heap_graph* g,
                        uint32_t upid, int64_t ts) {
  if ((g->upid && g->upid != upid) || (g->ts && g->ts != ts)) {
    st_count_error(m, "heap_graph_non_finalized_graph");
    return false;
  }
  g->upid = upid;
  g->ts = ts;
  return true;
}

uint32_t st_heap_object_row(struct st_importer* m, struct st_heap_graph* g,
                            uint64_t id) {
  struct st_table* t = &m->storage.tables[ST_HEAP_OBJECT_TABLE];
  uint32_t* row = st_map_at(&g->object_rows, id);
  if (*row)
    return *row - 1;
  struct st_cell cells[ST_HEAP_OBJECT_COLUMNS] = {
      [ST_HEAP_OBJECT_id] = st_int(t->rows),
      [ST_HEAP_OBJECT_upid] = st_int(g->upid),
      [ST_HEAP_OBJECT_graph_sample_ts] = st_int(g->ts),
      [ST_HEAP_OBJECT_self_size] = st_int(-1),
      [ST_HEAP_OBJECT_native_size] = st_int(0),
      [ST_HEAP_OBJECT_reachable] = st_int(0),
      [ST_HEAP_OBJECT_type_id] = st_int(0),
      [ST_HEAP_OBJECT_root_distance] = st_int(-1),
  };
  *ST_PUSH(&g->objects) = t->rows;
  *row = t->rows + 1;
  return st_table_add(t, cells);
}

uint32_t st_heap_class_row(struct st_importer* m, struct st_heap_graph* g,
                           uint64_t id) {
  struct st_table* t = &m->storage.tables[ST_HEAP_CLASS_TABLE];
  uint32_t* row = st_map_at(&g->class_rows, id);
  if (*row)
    return *row - 1;
  struct st_cell cells[ST_HEAP_CLASS_COLUMNS] = {[ST_HEAP_CLASS_id] =
                                                     st_int(t->rows)};
  *row = t->rows + 1;
  return st_table_add(t, cells);
}

static void add_reference(struct st_importer* m, uint32_t set, uint32_t owner,
                          uint32_t owned, st_string field) {
  struct st_table* t = &m->storage.tables[ST_HEAP_REFERENCE_TABLE];
  struct st_cell cells[ST_HEAP_REFERENCE_COLUMNS] = {
      [ST_HEAP_REFERENCE_id] = st_int(t->rows),
      [ST_HEAP_REFERENCE_reference_set_id] = st_int(set),
      [ST_HEAP_REFERENCE_owner_id] = st_int(owner),
      [ST_HEAP_REFERENCE_owned_id] = st_row(owned),
      [ST_HEAP_REFERENCE_field_name] = st_text(field),
  };
  st_table_add(t, cells);
}

/* Adds the object's references, whose ids are in the struct.  An id of 0 is a
 * reference to nothing. */
static void add_references(struct st_importer* m, struct st_heap_graph* g,
                           uint32_t owner, uint64_t base, uint64_t class_id) {
  struct st_heap_graphs* h = &m->heap_graphs;
  struct st_table* t = &m->storage.tables[ST_HEAP_REFERENCE_TABLE];
  uint32_t set = t->rows;
  for (uint32_t i = 0; i < h->owned_ids.size; i++) {
    uint64_t id = h->owned_ids.data[i];
    if (h->field_ids.size)
      *ST_PUSH(&g->uses) = (struct st_heap_use){t->rows, h->field_ids.data[i]};
    uint32_t owned = id ? st_heap_object_row(m, g, id + base) : ST_NO_ROW;
    add_reference(m, set, owner, owned, 0);
  }
  if (h->owned_ids.size && !h->field_ids.size)
    *ST_PUSH(&g->unnamed) = (struct st_heap_deferred){owner, class_id};
}

/* Adds the references of the runtime, which are no fields. */
static void add_internal(struct st_importer* m, struct st_heap_graph* g,
                         uint32_t owner, uint32_t set, struct st_field object) {
  struct st_integers ids;
  uint64_t id;
  st_integers_init(&ids, object, OBJECT_INTERNAL);
  while (st_integers_next(&ids, &id))
    add_reference(m, set, owner, st_heap_object_row(m, g, id),
                  text(m, "runtimeInternalObjects"));
}

static void set_heap(struct st_importer* m, struct st_heap_graph* g,
                     uint32_t row) {
  static const char* const kHeaps[] = {
      NULL, "HEAP_TYPE_APP", "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};
  if (!g->heap_type || g->heap_type > HEAP_BOOT_IMAGE)
    return;
  st_table_set(&m->storage.tables[ST_HEAP_OBJECT_TABLE], row,
               ST_HEAP_OBJECT_heap_type,
               st_text(text(m, kHeaps[g->heap_type])));
  if (g->heap_type >= HEAP_ZYGOTE)
    *ST_PUSH(&g->vm_roots) = g->last_object;
}

static void add_object(struct st_importer* m, struct st_heap_graph* g,
                       struct st_field object, const struct st_field* f) {
  struct st_table* t = &m->storage.tables[ST_HEAP_OBJECT_TABLE];
  uint32_t set = m->storage.tables[ST_HEAP_REFERENCE_TABLE].rows;
  uint64_t class_id = f[OBJECT_CLASS].value;
  uint32_t row = st_heap_object_row(m, g, g->last_object);
  st_table_set(t, row, ST_HEAP_OBJECT_type_id,
               st_int(st_heap_class_row(m, g, class_id)));
  st_table_set(t, row, ST_HEAP_OBJECT_self_size,
               st_int((int64_t)f[OBJECT_SIZE].value));
  set_heap(m, g, row);
  if (!f[OBJECT_SIZE].value)
    *ST_PUSH(&g->unsized) = (struct st_heap_deferred){row, class_id};
  add_references(m, g, row, f[OBJECT_BASE].value, class_id);
  add_internal(m, g, row, set, object);
  if (m->storage.tables[ST_HEAP_REFERENCE_TABLE].rows > set)
    st_table_set(t, row, ST_HEAP_OBJECT_reference_set_id, st_int(set));
  if (f[OBJECT_REGISTRY_SIZE].number) {
    *ST_PUSH(&g->sizes) = (int64_t)f[OBJECT_REGISTRY_SIZE].value;
    *st_map_at(&g->registry_sizes, row) = g->sizes.size;
  }
}

/* Reads the ids of the object's fields and references.  Returns false if they
 * are malformed. */
static bool read_ids(struct st_heap_graphs* h, struct st_field object) {
  struct st_integers ids;
  uint64_t id;
  h->field_ids.size = h->owned_ids.size = 0;
  st_integers_init(&ids, object, OBJECT_FIELDS);
  while (st_integers_next(&ids, &id))
    *ST_PUSH(&h->field_ids) = id;
  bool is_malformed = ids.is_malformed;
  st_integers_init(&ids, object, OBJECT_REFERENCES);
  while (st_integers_next(&ids, &id))
    *ST_PUSH(&h->owned_ids) = id;
  return !is_malformed && !ids.is_malformed;
}

/* Reads an object.  Returns false if the packet's other objects can't be read. */
static bool read_object(struct st_importer* m, struct st_heap_graph* g,
                        uint32_t upid, int64_t ts, struct st_field object) {
  struct st_heap_graphs* h = &m->heap_graphs;
  struct st_field f[OBJECT_INTERNAL + 1];
  st_message_read(object, f, OBJECT_INTERNAL + 1);
  bool is_valid = read_ids(h, object);
  if (!is_valid ||
      (h->field_ids.size && h->field_ids.size != h->owned_ids.size)) {
    count_for(m, upid, "heap_graph_malformed_packet");
    return is_valid;
  }
  if (!check_owner(m, g, upid, ts))
    return true;
  g->last_object = f[OBJECT_DELTA].value
                       ? g->last_object + f[OBJECT_DELTA].value
                       : f[OBJECT_ID].value;
  if (f[OBJECT_HEAP].number)
    g->heap_type =
        (uint8_t)(f[OBJECT_HEAP].value <= HEAP_BOOT_IMAGE ? f[OBJECT_HEAP].value
                                                          : 0);
  add_object(m, g, object, f);
  return true;
}

static void read_class(struct st_importer* m, struct st_heap_graph* g,
                       struct st_field message) {
  struct st_field f[CLASS_LOADER + 1];
  struct st_integers ids;
  uint64_t id;
  st_message_read(message, f, CLASS_LOADER + 1);
  struct st_heap_class c = {.id = f[CLASS_ID].value,
                            .location = f[CLASS_LOCATION].value,
                            .has_location = f[CLASS_LOCATION].number != 0,
                            .size = f[CLASS_SIZE].value,
                            .superclass = f[CLASS_SUPERCLASS].value,
                            .loader = f[CLASS_LOADER].value,
                            .name = st_field_text(&m->storage, f[CLASS_NAME]),
                            .first_field = g->class_fields.size};
  if (f[CLASS_KIND].value < ST_HEAP_KINDS)
    c.kind = (uint8_t)f[CLASS_KIND].value;
  st_integers_init(&ids, message, CLASS_FIELDS);
  while (st_integers_next(&ids, &id))
    *ST_PUSH(&g->class_fields) = id;
  if (ids.is_malformed) {
    count_for(m, g->upid, "heap_graph_malformed_packet");
    return;
  }
  c.field_count = g->class_fields.size - c.first_field;
  uint32_t* number = st_map_at(&g->class_numbers, c.id);
  if (!*number) {
    ST_PUSH(&g->classes);
    *number = g->classes.size;
  }
  g->classes.data[*number - 1] = c;
}

/* Reads the name of a field; it may begin with the field's type. */
static void read_field_name(struct st_importer* m, struct st_heap_graph* g,
                            struct st_field message) {
  struct st_field f[TEXT + 1];
  st_message_read(message, f, TEXT + 1);
  struct st_heap_field field = {.uses = g->uses.size};
  const uint8_t* name = f[TEXT].data;
  size_t size = f[TEXT].size;
  const uint8_t* space = size ? memchr(name, ' ', size) : NULL;
  if (space) {
    size_t type = (size_t)(space - name);
    field.type = st_string_add(&m->storage.strings, name, type);
    name = space + 1;
    size -= type + 1;
  }
  if (name)
    field.name = st_string_add(&m->storage.strings, name, size);
  uint32_t* number = st_map_at(&g->field_numbers, f[IID].value);
  if (!*number) {
    ST_PUSH(&g->fields);
    *number = g->fields.size;
  }
  g->fields.data[*number - 1] = field;
}

static void read_location(struct st_importer* m, struct st_heap_graph* g,
                          struct st_field message) {
  struct st_field f[TEXT + 1];
  st_message_read(message, f, TEXT + 1);
  uint32_t* location = st_map_at(&g->locations, f[IID].value);
  if (!*location)
    *location = st_field_text(&m->storage, f[TEXT]) + 1;
}

static void read_root(struct st_importer* m, struct st_heap_graph* g,
                      uint32_t upid, int64_t ts, struct st_field message) {
  struct st_integers ids;
  uint64_t id, type = st_message_find(message, ROOT_TYPE).value;
  if (!check_owner(m, g, upid, ts))
    return;
  st_integers_init(&ids, message, ROOT_OBJECTS);
  while (st_integers_next(&ids, &id))
    *ST_PUSH(&g->roots) =
        (struct st_heap_root){id, type < ST_HEAP_ROOT_TYPES ? type : 0};
  if (ids.is_malformed)
    count_for(m, upid, "heap_graph_malformed_packet");
}

/* Reads the messages of a field of the packet. */
static void read_part(struct st_importer* m, struct st_heap_graph* g,
                      const struct st_event* e, uint32_t upid,
                      uint32_t number) {
  struct st_decoder d;
  struct st_field f;
  bool is_valid = true;
  st_decoder_init(&d, e->data, e->size);
  while (is_valid && st_decoder_next(&d, &f)) {
    if (f.number != number || !f.data)
      continue;
    if (number == OBJECTS)
      is_valid = read_object(m, g, upid, e->ts, f);
    else if (number == CLASSES)
      read_class(m, g, f);
    else if (number == FIELD_NAMES)
      read_field_name(m, g, f);
    else if (number == LOCATIONS)
      read_location(m, g, f);
    else
      read_root(m, g, upid, e->ts, f);
  }
}

void st_parse_heap_graph(struct st_importer* m, const struct st_event* e,
                         uint32_t generation) {
  static const uint8_t kParts[] = {OBJECTS, CLASSES, FIELD_NAMES, LOCATIONS,
                                   ROOTS};
  struct st_field packet = {.data = e->data, .size = e->size};
  uint32_t upid = st_process_get(&m->processes,
                                 (uint32_t)st_message_find(packet, PID).value);
  struct st_heap_graph* g =
      graph_of(m, m->sequences.generations.data[generation].sequence);
  check_index(m, g, st_message_find(packet, INDEX).value);
  for (uint32_t i = 0; i < sizeof kParts; i++)
    read_part(m, g, e, upid, kParts[i]);
  if (!st_message_find(packet, CONTINUED).value)
    st_heap_graph_complete(m, g);
}

void st_finish_heap_graphs(struct st_importer* m) {
  struct st_heap_graphs* h = &m->heap_graphs;
  bool is_cut = false;
  for (uint32_t i = 0; i < h->graphs.size; i++) {
    if (!h->graphs.data[i].is_open)
      continue;
    is_cut = true;
    st_heap_graph_complete(m, &h->graphs.data[i]);
  }
  if (is_cut)
    st_count_error(m, "heap_graph_non_finalized_graph");
  st_heap_graphs_link(m);
}

void st_heap_graph_clear(struct st_heap_graph* g) {
  st_map_free(&g->object_rows);
  st_map_free(&g->class_rows);
  st_map_free(&g->field_numbers);
  st_map_free(&g->class_numbers);
  st_map_free(&g->locations);
  st_map_free(&g->registry_sizes);
  free(g->objects.data);
  free(g->fields.data);
  free(g->classes.data);
  free(g->class_fields.data);
  free(g->uses.data);
  free(g->unsized.data);
  free(g->unnamed.data);
  free(g->roots.data);
  free(g->vm_roots.data);
  free(g->sizes.data);
  *g = (struct st_heap_graph){0};
}

void st_heap_graphs_free(struct st_heap_graphs* h) {
  for (uint32_t i = 0; i < h->graphs.size; i++)
    st_heap_graph_clear(&h->graphs.data[i]);
  free(h->graphs.data);
  st_map_free(&h->by_sequence);
  st_keys_free(&h->class_keys);
  st_keys_free(&h->superclass_keys);
  free(h->class_rows.data);
  free(h->superclasses.data);
  free(h->roots.data);
  free(h->queue.data);
  st_map_free(&h->links);
  st_heap_tree_free(h->tree);
  free(h->field_ids.data);
  free(h->owned_ids.data);
}
