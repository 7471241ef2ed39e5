/* The flame graph of a heap graph: the objects by their shortest paths from a
 * root, as a tree of classes.
 *
 *   root a ─> b1 ─> c        a [ROOT_…]  count 1, cumulative 4
 *        └──> b2             └─ b        count 2, cumulative 3
 *                               └─ c     count 1, cumulative 1
 *
 * An object is in the tree once: below the first object, in the order of a walk
 * from the roots, that is one step nearer to a root.  Objects of a class below
 * the same node share a node.  Native memory is a child of its object's node.
 */
#include <stdlib.h>
#include <string.h>

#include "heap_graph_links.h"

enum { NO_NODE = 0 };

struct node {
  uint32_t parent; /* Number + 1; 0 for none. */
  uint32_t depth;
  st_string name;
  int64_t count, size, all_count, all_size;
};

/* An object whose children are being visited. */
struct visit {
  uint32_t node, depth; /* The object's node + 1. */
  uint32_t next, end;   /* Its children in `children`. */
};

struct st_heap_tree {
  ST_ARRAY(struct node) nodes;
  ST_ARRAY(struct visit) visits;
  ST_ARRAY(uint32_t) children;
  struct st_keys keys; /* Parent and name to a node. */
  struct st_map visited;
  ST_ARRAY(char) text; /* The name that is being made. */
};

static struct st_cell cell(struct st_importer* m, uint32_t object,
                           uint32_t column) {
  return st_table_get(&m->storage.tables[ST_HEAP_OBJECT_TABLE], object, column);
}

/* Returns the number of the node of a class below a parent, + 1. */
static uint32_t node_of(struct st_heap_tree* t, uint32_t parent, st_string name,
                        uint32_t depth) {
  uint32_t number = st_key_number(&t->keys, (struct st_key){parent, name, 0});
  if (number == t->nodes.size)
    *ST_PUSH(&t->nodes) =
        (struct node){.parent = parent, .depth = depth, .name = name};
  return number + 1;
}

static void append(struct st_importer* m, const void* text, size_t size) {
  struct st_heap_tree* t = m->heap_graphs.tree;
  ST_RESERVE(&t->text, size);
  if (size)
    memcpy(t->text.data + t->text.size, text, size);
  t->text.size += (uint32_t)size;
}

static void append_string(struct st_importer* m, struct st_cell string) {
  size_t size;
  const char* text = st_string_text(
      &m->storage.strings, string.valid ? (st_string)string.i : 0, &size);
  append(m, text, size);
}

/* Returns the name of the object's class after a prefix, with the type of the
 * root if the object is one. */
static st_string class_name(struct st_importer* m, uint32_t object,
                            const char* prefix) {
  const struct st_table* classes = &m->storage.tables[ST_HEAP_CLASS_TABLE];
  uint32_t row = (uint32_t)cell(m, object, ST_HEAP_OBJECT_type_id).i;
  struct st_cell name = ST_NULL;
  if (row < classes->rows)
    name = st_table_get(classes, row, ST_HEAP_CLASS_deobfuscated_name);
  if (row < classes->rows && !name.valid)
    name = st_table_get(classes, row, ST_HEAP_CLASS_name);
  struct st_cell root = cell(m, object, ST_HEAP_OBJECT_root_type);
  m->heap_graphs.tree->text.size = 0;
  append(m, prefix, strlen(prefix));
  append_string(m, name);
  if (root.valid) {
    append(m, " [", 2);
    append_string(m, root);
    append(m, "]", 1);
  }
  return st_string_add(&m->storage.strings, m->heap_graphs.tree->text.data,
                       m->heap_graphs.tree->text.size);
}

static void count(struct st_heap_tree* t, uint32_t node, int64_t size) {
  t->nodes.data[node - 1].count++;
  t->nodes.data[node - 1].size += size;
}

static void add_child(struct st_importer* m, uint32_t child, int64_t unused) {
  (void)unused;
  *ST_PUSH(&m->heap_graphs.tree->children) = child;
}

static int compare_rows(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return x < y ? -1 : x > y;
}

/* Adds an object below a node, and prepares the visit of its children. */
static void visit(struct st_importer* m, uint32_t object, uint32_t parent,
                  uint32_t depth) {
  struct st_heap_tree* t = m->heap_graphs.tree;
  uint32_t node = node_of(t, parent, class_name(m, object, ""), depth);
  int64_t native = cell(m, object, ST_HEAP_OBJECT_native_size).i;
  count(t, node, cell(m, object, ST_HEAP_OBJECT_self_size).i);
  if (native)
    count(t, node_of(t, node, class_name(m, object, "[native] "), depth + 1),
          native);
  uint32_t begin = t->children.size;
  st_heap_children(m, object, add_child, 0);
  if (t->children.size > begin)
    qsort(t->children.data + begin, t->children.size - begin,
          sizeof *t->children.data, compare_rows);
  *ST_PUSH(&t->visits) = (struct visit){node, depth, begin, t->children.size};
}

/* Walks from a root.  Children that are visited already, or have a shorter path
 * from a root, are left out. */
static void walk(struct st_importer* m, uint32_t root) {
  struct st_heap_tree* t = m->heap_graphs.tree;
  visit(m, root, NO_NODE, 0);
  while (t->visits.size) {
    struct visit* v = &t->visits.data[t->visits.size - 1];
    if (v->next == v->end) {
      t->visits.size--;
      t->children.size =
          t->visits.size ? t->visits.data[t->visits.size - 1].end : 0;
      continue;
    }
    uint32_t child = t->children.data[v->next++];
    uint32_t* is_visited = st_map_at(&t->visited, child);
    if (*is_visited ||
        cell(m, child, ST_HEAP_OBJECT_root_distance).i != (int64_t)v->depth + 1)
      continue;
    *is_visited = 1;
    visit(m, child, v->node, v->depth + 1);
  }
}

/* Stores the nodes of a graph, with the sums of the nodes below them. */
static void store(struct st_importer* m, uint32_t object) {
  struct st_heap_tree* t = m->heap_graphs.tree;
  struct st_table* table = &m->storage.tables[ST_HEAP_TREE_TABLE];
  for (uint32_t i = t->nodes.size; i-- > 0;) {
    struct node* n = &t->nodes.data[i];
    n->all_count += n->count;
    n->all_size += n->size;
    if (n->parent) {
      t->nodes.data[n->parent - 1].all_count += n->all_count;
      t->nodes.data[n->parent - 1].all_size += n->all_size;
    }
  }
  for (uint32_t i = 0; i < t->nodes.size; i++) {
    const struct node* n = &t->nodes.data[i];
    struct st_cell cells[ST_HEAP_TREE_COLUMNS] = {
        [ST_HEAP_TREE_id] = st_int(i),
        [ST_HEAP_TREE_ts] = cell(m, object, ST_HEAP_OBJECT_graph_sample_ts),
        [ST_HEAP_TREE_upid] = cell(m, object, ST_HEAP_OBJECT_upid),
        [ST_HEAP_TREE_depth] = st_int(n->depth),
        [ST_HEAP_TREE_name] = st_text(n->name),
        [ST_HEAP_TREE_count] = st_int(n->count),
        [ST_HEAP_TREE_cumulative_count] = st_int(n->all_count),
        [ST_HEAP_TREE_size] = st_int(n->size),
        [ST_HEAP_TREE_cumulative_size] = st_int(n->all_size),
        [ST_HEAP_TREE_parent_id] = n->parent ? st_int(n->parent - 1) : ST_NULL};
    st_table_add(table, cells);
  }
}

static void clear(struct st_heap_tree* t) {
  t->nodes.size = t->visits.size = t->children.size = 0;
  st_keys_free(&t->keys);
  st_map_free(&t->visited);
}

static bool is_same_graph(struct st_importer* m, uint32_t a, uint32_t b) {
  return cell(m, a, ST_HEAP_OBJECT_upid).i ==
             cell(m, b, ST_HEAP_OBJECT_upid).i &&
         cell(m, a, ST_HEAP_OBJECT_graph_sample_ts).i ==
             cell(m, b, ST_HEAP_OBJECT_graph_sample_ts).i;
}

void st_heap_flamegraphs(struct st_importer* m) {
  struct st_heap_graphs* h = &m->heap_graphs;
  uint32_t* roots = h->roots.data;
  if (!h->roots.size)
    return;
  h->tree = st_memory_new(sizeof *h->tree);
  /* The roots of a graph follow each other, because graphs are completed one
   * after the other. */
  for (uint32_t i = 0, end; i < h->roots.size; i = end) {
    for (end = i + 1; end < h->roots.size; end++) {
      if (!is_same_graph(m, roots[i], roots[end]))
        break;
    }
    qsort(roots + i, end - i, sizeof *roots, compare_rows);
    for (uint32_t k = i; k < end; k++)
      walk(m, roots[k]);
    store(m, roots[i]);
    clear(h->tree);
  }
}

void st_heap_tree_free(struct st_heap_tree* t) {
  if (!t)
    return;
  clear(t);
  free(t->nodes.data);
  free(t->visits.data);
  free(t->children.data);
  free(t->text.data);
  free(t);
}
