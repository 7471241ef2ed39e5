#include "heap_dominators.h"

#include <stdlib.h>

#include "heap_graph_links.h"

enum { ROOT = 1 };

/* Nodes have numbers from 1 on, in the order of a depth-first walk; 1 is the
 * node above the roots. */
struct graph {
  struct st_importer* m;
  uint32_t objects; /* Rows. */
  uint32_t nodes;   /* The last number. */
  uint32_t* number; /* By row; 0: not reached. */
  uint32_t* row;    /* By number, as everything below. */
  uint32_t* parent; /* In the walk. */
  uint32_t* semi;   /* Semidominator. */
  uint32_t* label;  /* The node with the least semidominator above. */
  uint32_t* ancestor;
  uint32_t* bucket; /* The first node whose semidominator this is. */
  uint32_t* next;   /* In that list; later among the children in the tree. */
  uint32_t* idom;   /* Immediate dominator. */
  uint32_t* stack;
  int64_t* retained;
  /* References by row: those of row i are from first[i] to first[i + 1]. */
  uint32_t* first;
  uint32_t* target;
  /* The same backwards, by number. */
  uint32_t* first_before;
  uint32_t* before;
  uint32_t fill; /* Of `target`. */
};

static bool allocate(struct graph* g, uint32_t references) {
  size_t n = (size_t)g->objects + 2;
  uint32_t** arrays[] = {
      &g->number, &g->row,  &g->parent, &g->semi,  &g->label, &g->ancestor,
      &g->bucket, &g->next, &g->idom,   &g->stack, &g->first, &g->first_before};
  bool done = true;
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    done &= (*arrays[i] = calloc(n + 1, sizeof(uint32_t))) != NULL;
  g->target = calloc((size_t)references + 1, sizeof(uint32_t));
  /* The roots are references of the node above them. */
  g->before = calloc((size_t)references + n, sizeof(uint32_t));
  g->retained = calloc(n, sizeof(int64_t));
  return done && g->target && g->before && g->retained;
}

static void free_graph(struct graph* g) {
  uint32_t* arrays[] = {g->number, g->row,    g->parent,   g->semi,
                        g->label,  g->bucket, g->ancestor, g->next,
                        g->idom,   g->stack,  g->first,    g->first_before,
                        g->target, g->before};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    free(arrays[i]);
  free(g->retained);
}

static struct st_cell cell(const struct graph* g, uint32_t row,
                           uint32_t column) {
  return st_table_get(&g->m->storage.tables[ST_HEAP_OBJECT_TABLE], row, column);
}

static void add_target(struct st_importer* m, uint32_t child, int64_t graph) {
  (void)m;
  struct graph* g = (struct graph*)(intptr_t)graph;
  g->target[g->fill++] = child;
}

static void read_references(struct graph* g) {
  for (uint32_t row = 0; row < g->objects; row++) {
    g->first[row] = g->fill;
    if (cell(g, row, ST_HEAP_OBJECT_reachable).i)
      st_heap_children(g->m, row, add_target, (int64_t)(intptr_t)g);
  }
  g->first[g->objects] = g->fill;
}

/* Numbers what can be reached from a root.  While a node is on the stack, `next`
 * is the place of its next reference. */
static void walk(struct graph* g, uint32_t root) {
  uint32_t depth = 0, child = root, parent = ROOT;
  while (true) {
    if (!g->number[child]) {
      uint32_t n = g->number[child] = ++g->nodes;
      g->row[n] = child;
      g->parent[n] = parent;
      g->next[n] = g->first[child];
      g->stack[depth++] = n;
    }
    while (depth) {
      parent = g->stack[depth - 1];
      if (g->next[parent] < g->first[g->row[parent] + 1])
        break;
      depth--;
    }
    if (!depth)
      return;
    child = g->target[g->next[parent]++];
  }
}

static void walk_all(struct graph* g) {
  g->nodes = ROOT;
  for (uint32_t row = 0; row < g->objects; row++)
    if (cell(g, row, ST_HEAP_OBJECT_root_type).valid)
      walk(g, row);
}

static bool is_root(const struct graph* g, uint32_t n) {
  return cell(g, g->row[n], ST_HEAP_OBJECT_root_type).valid;
}

/* Counts, then stores, the nodes that refer to each node. */
static void turn_references(struct graph* g) {
  for (uint32_t n = ROOT + 1; n <= g->nodes; n++) {
    g->first_before[n] += is_root(g, n);
    for (uint32_t i = g->first[g->row[n]]; i < g->first[g->row[n] + 1]; i++)
      g->first_before[g->number[g->target[i]]]++;
  }
  for (uint32_t n = ROOT + 1; n <= g->nodes + 1; n++)
    g->first_before[n] += g->first_before[n - 1];
  /* Now they are the ends; storing from the end on makes them the begins. */
  for (uint32_t n = g->nodes; n > ROOT; n--) {
    if (is_root(g, n))
      g->before[--g->first_before[n]] = ROOT;
    for (uint32_t i = g->first[g->row[n]]; i < g->first[g->row[n] + 1]; i++)
      g->before[--g->first_before[g->number[g->target[i]]]] = n;
  }
}

/* Shortens the path from a node to the top of its tree. */
static void compress(struct graph* g, uint32_t n) {
  uint32_t depth = 0;
  for (; g->ancestor[g->ancestor[n]]; n = g->ancestor[n])
    g->stack[depth++] = n;
  while (depth) {
    n = g->stack[--depth];
    uint32_t above = g->ancestor[n];
    if (g->semi[g->label[above]] < g->semi[g->label[n]])
      g->label[n] = g->label[above];
    g->ancestor[n] = g->ancestor[above];
  }
}

static uint32_t eval(struct graph* g, uint32_t n) {
  if (!g->ancestor[n])
    return n;
  compress(g, n);
  return g->label[n];
}

static void empty_bucket(struct graph* g, uint32_t parent) {
  for (uint32_t n = g->bucket[parent], next; n; n = next) {
    next = g->next[n];
    uint32_t u = eval(g, n);
    g->idom[n] = g->semi[u] < g->semi[n] ? u : parent;
  }
  g->bucket[parent] = 0;
}

static void find_dominators(struct graph* g) {
  for (uint32_t n = 0; n <= g->nodes; n++)
    g->semi[n] = g->label[n] = n;
  for (uint32_t n = g->nodes; n > ROOT; n--) {
    for (uint32_t i = g->first_before[n]; i < g->first_before[n + 1]; i++) {
      uint32_t semi = g->semi[eval(g, g->before[i])];
      if (semi < g->semi[n])
        g->semi[n] = semi;
    }
    g->next[n] = g->bucket[g->semi[n]];
    g->bucket[g->semi[n]] = n;
    g->ancestor[n] = g->parent[n];
    empty_bucket(g, g->parent[n]);
  }
  for (uint32_t n = ROOT + 1; n <= g->nodes; n++)
    if (g->idom[n] != g->semi[n])
      g->idom[n] = g->idom[g->idom[n]];
}

static int64_t size_of(const struct graph* g, uint32_t n) {
  return cell(g, g->row[n], ST_HEAP_OBJECT_self_size).i +
         cell(g, g->row[n], ST_HEAP_OBJECT_native_size).i;
}

/* Sums what nodes dominate, and links the children of each node: the first one
 * is in `bucket`. */
static void sum(struct graph* g) {
  for (uint32_t n = g->nodes; n > ROOT; n--) {
    g->retained[n] += size_of(g, n);
    g->retained[g->idom[n]] += g->retained[n];
    g->next[n] = g->bucket[g->idom[n]];
    g->bucket[g->idom[n]] = n;
  }
}

static void count(const struct graph* g, struct st_heap_retained* c, uint32_t n,
                  bool is_below_its_class) {
  c->upid = (uint32_t)cell(g, g->row[n], ST_HEAP_OBJECT_upid).i;
  c->ts = cell(g, g->row[n], ST_HEAP_OBJECT_graph_sample_ts).i;
  c->objects++;
  c->size += size_of(g, n);
  if (!is_below_its_class)
    c->retained += g->retained[n];
}

/* Walks the tree of dominators; `open` counts the nodes of each class on the
 * way to the current one. */
static void sum_classes(struct graph* g, struct st_heap_retained* classes,
                        uint32_t* open) {
  uint32_t depth = 0, n = g->bucket[ROOT];
  while (n) {
    uint32_t c = (uint32_t)cell(g, g->row[n], ST_HEAP_OBJECT_type_id).i;
    count(g, &classes[c], n, open[c]++ > 0);
    g->stack[depth++] = n;
    uint32_t following = g->bucket[n];
    while (!following && depth) {
      n = g->stack[--depth];
      open[cell(g, g->row[n], ST_HEAP_OBJECT_type_id).i]--;
      following = g->next[n];
    }
    n = following;
  }
}

/* Keeps the classes with objects. */
static uint32_t pack(struct st_heap_retained* classes, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++)
    if (classes[i].objects) {
      classes[i].class_row = i;
      classes[kept++] = classes[i];
    }
  return kept;
}

bool st_heap_retained(struct st_importer* m, struct st_heap_classes* classes) {
  struct st_table* tables = m->storage.tables;
  uint32_t count = tables[ST_HEAP_CLASS_TABLE].rows;
  struct graph g = {.m = m, .objects = tables[ST_HEAP_OBJECT_TABLE].rows};
  uint32_t* open = calloc((size_t)count + 1, sizeof *open);
  classes->rows = calloc((size_t)count + 1, sizeof *classes->rows);
  bool done = allocate(&g, tables[ST_HEAP_REFERENCE_TABLE].rows) && open &&
              classes->rows;
  if (done) {
    read_references(&g);
    walk_all(&g);
    turn_references(&g);
    find_dominators(&g);
    sum(&g);
    sum_classes(&g, classes->rows, open);
    classes->count = pack(classes->rows, count);
  }
  free_graph(&g);
  free(open);
  return done;
}
