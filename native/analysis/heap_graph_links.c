#include "heap_graph_links.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_EMPTY_CLASSES = 64,
  KIND_NO_REFERENCES = 2,
  KIND_ARRAY = 4,
  KIND_SOFT_REFERENCE = 8, /* This and the following kinds. */
  ROOT_VM_INTERNAL = 13,
};

static const char* const kKinds[ST_HEAP_KINDS] = {"KIND_UNKNOWN",
                                                  "KIND_NORMAL",
                                                  "KIND_NOREFERENCES",
                                                  "KIND_STRING",
                                                  "KIND_ARRAY",
                                                  "KIND_CLASS",
                                                  "KIND_CLASSLOADER",
                                                  "KIND_DEXCACHE",
                                                  "KIND_SOFT_REFERENCE",
                                                  "KIND_WEAK_REFERENCE",
                                                  "KIND_FINALIZER_REFERENCE",
                                                  "KIND_PHANTOM_REFERENCE"};

static const char* const kRoots[ST_HEAP_ROOT_TYPES] = {
    "ROOT_UNKNOWN",           "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",
    "ROOT_JAVA_FRAME",        "ROOT_NATIVE_STACK", "ROOT_STICKY_CLASS",
    "ROOT_THREAD_BLOCK",      "ROOT_MONITOR_USED", "ROOT_THREAD_OBJECT",
    "ROOT_INTERNED_STRING",   "ROOT_FINALIZING",   "ROOT_DEBUGGER",
    "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",  "ROOT_JNI_MONITOR"};

static struct st_table* objects(struct st_importer* m) {
  return &m->storage.tables[ST_HEAP_OBJECT_TABLE];
}

static struct st_table* references(struct st_importer* m) {
  return &m->storage.tables[ST_HEAP_REFERENCE_TABLE];
}

static struct st_table* classes(struct st_importer* m) {
  return &m->storage.tables[ST_HEAP_CLASS_TABLE];
}

static st_string text_at(const struct st_table* t, uint32_t row,
                         uint32_t column) {
  struct st_cell cell = st_table_get(t, row, column);
  return cell.valid ? (st_string)cell.i : 0;
}

static void count_malformed(struct st_importer* m,
                            const struct st_heap_graph* g) {
  st_increment_stat(m, "heap_graph_malformed_packet", g->upid, "error", "trace",
                    1);
}

/* The rows of an object's references. */
struct range {
  uint32_t begin, end;
};

static struct range references_of(struct st_importer* m, uint32_t object) {
  struct st_cell set =
      st_table_get(objects(m), object, ST_HEAP_OBJECT_reference_set_id);
  const struct st_table* t = references(m);
  struct range r = {0};
  if (!set.valid)
    return r;
  r.begin = r.end = (uint32_t)set.i;
  while (r.end < t->rows &&
         st_table_get(t, r.end, ST_HEAP_REFERENCE_reference_set_id).i == set.i)
    r.end++;
  return r;
}

static void name_reference(struct st_importer* m, uint32_t reference,
                           const struct st_heap_field* field) {
  st_table_set(references(m), reference, ST_HEAP_REFERENCE_field_name,
               st_text(field->name));
  st_table_set(references(m), reference, ST_HEAP_REFERENCE_field_type_name,
               st_text(field->type));
}

static const struct st_heap_class* class_of(const struct st_heap_graph* g,
                                            uint64_t id) {
  uint32_t number = st_map_get(&g->class_numbers, id);
  return number ? &g->classes.data[number - 1] : NULL;
}

/* Names the references of objects that had the ids of their fields. */
static void name_uses(struct st_importer* m, struct st_heap_graph* g) {
  for (uint32_t i = 0; i < g->uses.size; i++) {
    uint32_t number = st_map_get(&g->field_numbers, g->uses.data[i].field);
    if (number && i < g->fields.data[number - 1].uses)
      name_reference(m, g->uses.data[i].reference, &g->fields.data[number - 1]);
  }
}

/* Goes to the class that has the field, from a class and its superclasses.
 * Returns NULL if there is none; `field` is the field's number in the class. */
static const struct st_heap_class* find_field(struct st_importer* m,
                                              const struct st_heap_graph* g,
                                              const struct st_heap_class* c,
                                              uint32_t* field) {
  uint32_t empty = 0;
  while (c && *field >= c->field_count) {
    *field -= c->field_count;
    empty = c->field_count ? 0 : empty + 1;
    c = c->superclass && empty <= MAX_EMPTY_CLASSES ? class_of(g, c->superclass)
                                                    : NULL;
    if (!c)
      count_malformed(m, g);
  }
  return c;
}

/* Names an object's references by the fields of its class. */
static void name_by_class(struct st_importer* m, struct st_heap_graph* g,
                          uint32_t object, const struct st_heap_class* c) {
  struct range r = references_of(m, object);
  uint32_t field = 0;
  for (uint32_t i = r.begin; i < r.end; i++) {
    c = find_field(m, g, c, &field);
    if (!c)
      return;
    uint64_t id = g->class_fields.data[c->first_field + field++];
    uint32_t number = st_map_get(&g->field_numbers, id);
    if (number)
      name_reference(m, i, &g->fields.data[number - 1]);
    else
      count_malformed(m, g);
  }
}

/* Sets the sizes and field names that objects have from their classes. */
static void apply_classes(struct st_importer* m, struct st_heap_graph* g) {
  bool is_missing = false;
  for (uint32_t i = 0; i < g->unsized.size; i++) {
    const struct st_heap_class* c = class_of(g, g->unsized.data[i].class_id);
    is_missing |= !c;
    if (c)
      st_table_set(objects(m), g->unsized.data[i].object,
                   ST_HEAP_OBJECT_self_size, st_int((int64_t)c->size));
  }
  for (uint32_t i = 0; i < g->unnamed.size; i++) {
    const struct st_heap_class* c = class_of(g, g->unnamed.data[i].class_id);
    is_missing |= !c;
    if (c && (c->kind < KIND_NO_REFERENCES || c->kind > KIND_ARRAY))
      name_by_class(m, g, g->unnamed.data[i].object, c);
  }
  if (is_missing)
    count_malformed(m, g);
}

/* Stores a class under its name and location. */
static void remember_class(struct st_importer* m, uint32_t row) {
  struct st_heap_graphs* h = &m->heap_graphs;
  struct st_key key = {text_at(classes(m), row, ST_HEAP_CLASS_name),
                       text_at(classes(m), row, ST_HEAP_CLASS_location), 0};
  uint32_t number = st_key_number(&h->class_keys, key);
  if (number == h->class_rows.size)
    *ST_PUSH(&h->class_rows) = row;
  else if (row > h->class_rows.data[number])
    h->class_rows.data[number] = row;
}

static st_string location_of(struct st_importer* m, struct st_heap_graph* g,
                             const struct st_heap_class* c) {
  if (!c->has_location)
    return 0;
  uint32_t location = st_map_get(&g->locations, c->location);
  if (!location)
    st_increment_stat(m, "heap_graph_invalid_string_id", g->upid, "error",
                      "trace", 1);
  return location ? location - 1 : 0;
}

static void store_class(struct st_importer* m, struct st_heap_graph* g,
                        const struct st_heap_class* c) {
  uint32_t row = st_heap_class_row(m, g, c->id);
  st_string location = location_of(m, g, c);
  st_table_set(classes(m), row, ST_HEAP_CLASS_name, st_text(c->name));
  st_table_set(classes(m), row, ST_HEAP_CLASS_location, st_text(location));
  st_table_set(classes(m), row, ST_HEAP_CLASS_kind,
               st_text(m->heap_graphs.texts.kinds[c->kind]));
  if (c->loader)
    st_table_set(classes(m), row, ST_HEAP_CLASS_classloader_id,
                 st_int(st_heap_object_row(m, g, c->loader)));
  remember_class(m, row);
  *ST_PUSH(&m->deobfuscation.owners) = (struct st_class_owner){row, g->upid};
}

static int compare_ids(const void* a, const void* b) {
  const struct st_heap_class *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

void st_heap_children(struct st_importer* m, uint32_t object,
                      void (*each)(struct st_importer*, uint32_t child,
                                   int64_t value),
                      int64_t value) {
  const struct st_heap_texts* texts = &m->heap_graphs.texts;
  uint32_t class_row =
      (uint32_t)st_table_get(objects(m), object, ST_HEAP_OBJECT_type_id).i;
  st_string kind = class_row < classes(m)->rows
                       ? text_at(classes(m), class_row, ST_HEAP_CLASS_kind)
                       : 0;
  bool is_weak = false;
  for (uint32_t i = KIND_SOFT_REFERENCE; i < ST_HEAP_KINDS; i++)
    is_weak |= kind && kind == texts->kinds[i];
  struct range r = references_of(m, object);
  for (uint32_t i = r.begin; i < r.end; i++) {
    struct st_cell owned =
        st_table_get(references(m), i, ST_HEAP_REFERENCE_owned_id);
    st_string name = text_at(references(m), i, ST_HEAP_REFERENCE_field_name);
    if (owned.valid && !(is_weak && name == texts->referent))
      each(m, (uint32_t)owned.i, value);
  }
}

static void reach(struct st_importer* m, uint32_t object, int64_t unused) {
  (void)unused;
  if (st_table_get(objects(m), object, ST_HEAP_OBJECT_reachable).i)
    return;
  st_table_set(objects(m), object, ST_HEAP_OBJECT_reachable, st_int(1));
  *ST_PUSH(&m->heap_graphs.queue) = object;
}

/* Types of roots that are preferred if an object is a root in several ways have
 * the lowest ranks. */
static uint32_t rank(struct st_importer* m, st_string type) {
  static const uint8_t kFirst[] = {5, 1, 2};
  for (uint32_t i = 0; i < sizeof kFirst; i++) {
    if (type == m->heap_graphs.texts.roots[kFirst[i]])
      return i;
  }
  return sizeof kFirst;
}

static void mark_root(struct st_importer* m, struct st_heap_graph* g,
                      uint64_t id, uint32_t type_number) {
  struct st_heap_graphs* h = &m->heap_graphs;
  uint32_t row = st_map_get(&g->object_rows, id);
  if (!row--)
    return;
  st_string type = h->texts.roots[type_number];
  st_string known = text_at(objects(m), row, ST_HEAP_OBJECT_root_type);
  if (known && rank(m, type) >= rank(m, known))
    return;
  st_table_set(objects(m), row, ST_HEAP_OBJECT_root_type, st_text(type));
  if (known)
    return;
  *ST_PUSH(&h->roots) = row;
  h->queue.size = 0;
  reach(m, row, 0);
  while (h->queue.size)
    st_heap_children(m, h->queue.data[--h->queue.size], reach, 0);
}

/* The fields by which superclasses and native sizes are found. */
enum link { SUPERCLASS, REFERENT, THUNK, THIS, NEXT, LINKS };

static const char* const kLinks[LINKS] = {
    "java.lang.Class.superClass", "java.lang.ref.Reference.referent",
    "sun.misc.Cleaner.thunk",
    "libcore.util.NativeAllocationRegistry$CleanerThunk.this$0",
    "sun.misc.Cleaner.next"};

static uint64_t link_key(uint32_t object, enum link link) {
  return (uint64_t)object * LINKS + link;
}

/* Returns the row that an object refers to by the field; ST_NO_ROW if there is
 * none. */
static uint32_t linked(const struct st_heap_graphs* h, uint32_t object,
                       enum link link) {
  return st_map_get(&h->links, link_key(object, link)) - 1;
}

/* Finds the first reference of each object by each of the fields. */
static void find_links(struct st_importer* m, const struct st_heap_graph* g) {
  struct st_map* links = &m->heap_graphs.links;
  st_string names[LINKS];
  st_map_free(links);
  for (uint32_t i = 0; i < LINKS; i++)
    names[i] = st_intern(&m->storage, kLinks[i]);
  for (uint32_t i = 0; i < g->objects.size; i++) {
    uint32_t object = g->objects.data[i];
    struct range r = references_of(m, object);
    for (uint32_t j = r.end; j > r.begin; j--) {
      st_string name =
          text_at(references(m), j - 1, ST_HEAP_REFERENCE_field_name);
      struct st_cell owned =
          st_table_get(references(m), j - 1, ST_HEAP_REFERENCE_owned_id);
      for (uint32_t link = 0; name && link < LINKS; link++) {
        if (name == names[link])
          *st_map_at(links, link_key(object, link)) =
              owned.valid ? (uint32_t)owned.i + 1 : 0;
      }
    }
  }
}

/* The parts of a class's name. */
struct class_name {
  const char* text; /* Valid until the next string is added. */
  size_t size;
  bool is_static, is_array;
};

/* Splits `java.lang.Class<X[]>` into X and what it says about X. */
static struct class_name split_name(struct st_importer* m, st_string name) {
  static const char kClass[] = "java.lang.Class<";
  struct class_name n = {0};
  n.text = st_string_text(&m->storage.strings, name, &n.size);
  size_t prefix = sizeof kClass - 1;
  if (n.size > prefix && n.text[n.size - 1] == '>' &&
      memcmp(n.text, kClass, prefix) == 0) {
    n.is_static = true;
    n.text += prefix;
    n.size -= prefix + 1;
  }
  while (n.size >= 2 && memcmp(n.text + n.size - 2, "[]", 2) == 0) {
    n.is_array = true;
    n.size -= 2;
  }
  return n;
}

static st_string base_name(struct st_importer* m, struct class_name n) {
  return st_string_add(&m->storage.strings,
                       st_bytes_copy(&m->arena, n.text, n.size), n.size);
}

/* Finds the superclass of the class that an object stands for. */
static void find_superclass(struct st_importer* m, uint32_t object) {
  struct st_heap_graphs* h = &m->heap_graphs;
  uint32_t super = linked(h, object, SUPERCLASS);
  uint32_t row =
      (uint32_t)st_table_get(objects(m), object, ST_HEAP_OBJECT_type_id).i;
  if (super == ST_NO_ROW || row >= classes(m)->rows)
    return;
  uint32_t super_row =
      (uint32_t)st_table_get(objects(m), super, ST_HEAP_OBJECT_type_id).i;
  struct class_name n =
      split_name(m, text_at(classes(m), row, ST_HEAP_CLASS_name));
  if (!n.is_static || n.is_array)
    return;
  struct st_key key = {base_name(m, n),
                       text_at(classes(m), row, ST_HEAP_CLASS_location), 0};
  n = split_name(m, text_at(classes(m), super_row, ST_HEAP_CLASS_name));
  struct st_key super_key = {
      base_name(m, n), text_at(classes(m), super_row, ST_HEAP_CLASS_location),
      0};
  uint32_t known = h->class_keys.keys.size;
  uint32_t found = st_key_number(&h->class_keys, super_key);
  if (found == known) {
    *ST_PUSH(&h->class_rows) = ST_NO_ROW;
    return;
  }
  uint32_t number = st_key_number(&h->superclass_keys, key);
  if (number == h->superclasses.size)
    ST_PUSH(&h->superclasses);
  h->superclasses.data[number] =
      (struct st_heap_superclass){h->class_rows.data[found], classes(m)->rows};
}

/* Adds the size of native memory to the object whose cleaner this is. */
static void add_native_size(struct st_importer* m,
                            const struct st_heap_graph* g, uint32_t cleaner) {
  const struct st_heap_graphs* h = &m->heap_graphs;
  uint32_t referent = linked(h, cleaner, REFERENT);
  uint32_t thunk = linked(h, cleaner, THUNK);
  if (referent == ST_NO_ROW || thunk == ST_NO_ROW ||
      linked(h, cleaner, NEXT) == cleaner) /* It has been cleaned. */
    return;
  uint32_t registry = linked(h, thunk, THIS);
  uint32_t size =
      registry == ST_NO_ROW ? 0 : st_map_get(&g->registry_sizes, registry);
  if (!size)
    return;
  /* The lowest bit says who allocated the memory. */
  uint64_t sum = (uint64_t)g->sizes.data[size - 1] & ~(uint64_t)1;
  sum +=
      (uint64_t)st_table_get(objects(m), referent, ST_HEAP_OBJECT_native_size)
          .i;
  st_table_set(objects(m), referent, ST_HEAP_OBJECT_native_size,
               st_int((int64_t)sum));
}

static void apply_links(struct st_importer* m, const struct st_heap_graph* g) {
  st_string cleaner = st_intern(&m->storage, "sun.misc.Cleaner");
  find_links(m, g);
  for (uint32_t i = 0; i < g->objects.size; i++) {
    uint32_t object = g->objects.data[i];
    uint32_t row =
        (uint32_t)st_table_get(objects(m), object, ST_HEAP_OBJECT_type_id).i;
    find_superclass(m, object);
    if (row < classes(m)->rows &&
        text_at(classes(m), row, ST_HEAP_CLASS_name) == cleaner)
      add_native_size(m, g, object);
  }
}

static void set_texts(struct st_importer* m) {
  struct st_heap_texts* t = &m->heap_graphs.texts;
  t->referent = st_intern(&m->storage, kLinks[REFERENT]);
  for (uint32_t i = 0; i < ST_HEAP_KINDS; i++)
    t->kinds[i] = st_intern(&m->storage, kKinds[i]);
  for (uint32_t i = 0; i < ST_HEAP_ROOT_TYPES; i++)
    t->roots[i] = st_intern(&m->storage, kRoots[i]);
}

void st_heap_graph_complete(struct st_importer* m, struct st_heap_graph* g) {
  set_texts(m);
  name_uses(m, g);
  apply_classes(m, g);
  /* New rows of classes are in the order of their ids. */
  if (g->classes.size)
    qsort(g->classes.data, g->classes.size, sizeof *g->classes.data,
          compare_ids);
  for (uint32_t i = 0; i < g->classes.size; i++)
    store_class(m, g, &g->classes.data[i]);
  for (uint32_t i = 0; i < g->roots.size; i++)
    mark_root(m, g, g->roots.data[i].object, g->roots.data[i].type);
  for (uint32_t i = 0; i < g->vm_roots.size; i++)
    mark_root(m, g, g->vm_roots.data[i], ROOT_VM_INTERNAL);
  apply_links(m, g);
  st_heap_graph_clear(g);
}

static void set_superclasses(struct st_importer* m) {
  struct st_heap_graphs* h = &m->heap_graphs;
  for (uint32_t i = 0; i < classes(m)->rows; i++) {
    struct st_key key = {text_at(classes(m), i, ST_HEAP_CLASS_name),
                         text_at(classes(m), i, ST_HEAP_CLASS_location), 0};
    uint32_t number = st_key_number(&h->superclass_keys, key);
    if (number == h->superclasses.size) {
      *ST_PUSH(&h->superclasses) = (struct st_heap_superclass){ST_NO_ROW, 0};
      continue;
    }
    struct st_heap_superclass s = h->superclasses.data[number];
    if (i < s.classes)
      st_table_set(classes(m), i, ST_HEAP_CLASS_superclass_id, st_row(s.row));
  }
}

static void approach(struct st_importer* m, uint32_t object, int64_t distance) {
  if (st_table_get(objects(m), object, ST_HEAP_OBJECT_root_distance).i >= 0)
    return;
  st_table_set(objects(m), object, ST_HEAP_OBJECT_root_distance,
               st_int(distance));
  *ST_PUSH(&m->heap_graphs.queue) = object;
}

void st_heap_graphs_link(struct st_importer* m) {
  struct st_heap_graphs* h = &m->heap_graphs;
  set_superclasses(m);
  h->queue.size = 0;
  for (uint32_t i = 0; i < h->roots.size; i++)
    approach(m, h->roots.data[i], 0);
  for (uint32_t i = 0; i < h->queue.size; i++) {
    uint32_t object = h->queue.data[i];
    st_heap_children(
        m, object, approach,
        st_table_get(objects(m), object, ST_HEAP_OBJECT_root_distance).i + 1);
  }
}
