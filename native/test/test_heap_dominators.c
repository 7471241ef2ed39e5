/* Tests of what classes retain, against a simple model: an object dominates what
 * cannot be reached without it. */
#include "analysis/heap_dominators.h"

#include "check.h"
#include "packet_builder.h"
#include "random.h"

enum { SEQUENCE = 3, PID = 40, MOST = 20, MAX_REFERENCES = 3, CLASSES = 4 };

/* Objects from 1 on; object i takes 2^i bytes, so sums tell which objects they
 * contain. */
struct graph {
  uint32_t objects;
  uint32_t references[MOST + 1][MAX_REFERENCES]; /* 0: none. */
  bool is_root[MOST + 1];
};

static uint32_t class_of(uint32_t object) {
  return 1 + object % CLASSES;
}

/* Returns the sum of the objects that can be reached without an object. */
static int64_t reach(const struct graph* g, uint32_t without) {
  bool reached[MOST + 1] = {false};
  uint32_t queue[MOST + 1], count = 0;
  int64_t sum = 0;
  for (uint32_t i = 1; i <= g->objects; i++)
    if (g->is_root[i] && i != without)
      reached[queue[count++] = i] = true;
  for (uint32_t k = 0; k < count; k++) {
    sum += (int64_t)1 << queue[k];
    for (int r = 0; r < MAX_REFERENCES; r++) {
      uint32_t to = g->references[queue[k]][r];
      if (to && to != without && !reached[to])
        reached[queue[count++] = to] = true;
    }
  }
  return sum;
}

static bool has(int64_t sum, uint32_t object) {
  return sum >> object & 1;
}

static int64_t retained_by(const struct graph* g, uint32_t class_id) {
  int64_t sum = 0, all = reach(g, 0);
  for (uint32_t i = 1; i <= g->objects; i++) {
    bool counts = has(all, i) && class_of(i) == class_id;
    for (uint32_t k = 1; k <= g->objects; k++)
      counts &= k == i || class_of(k) != class_id || has(reach(g, k), i);
    if (counts)
      sum += all - reach(g, i);
  }
  return sum;
}

static void add_object(struct message* packet, const struct graph* g,
                       uint32_t object) {
  struct message m = {0};
  uint8_t ids[MAX_REFERENCES];
  for (int i = 0; i < MAX_REFERENCES; i++)
    ids[i] = (uint8_t)g->references[object][i];
  add_number(&m, 1, object);
  add_number(&m, 2, class_of(object));
  add_number(&m, 3, (uint64_t)1 << object);
  add_bytes(&m, 5, ids, sizeof ids);
  add_message(packet, 2, &m);
  if (g->is_root[object]) {
    struct message root = {0};
    add_number(&root, 1, object);
    add_number(&root, 2, 1);
    add_message(packet, 7, &root);
  }
}

static void add_class(struct message* packet, uint32_t id) {
  struct message m = {0};
  char name[] = {'a', (char)('0' + id), 0};
  add_number(&m, 1, id);
  add_text(&m, 3, name);
  add_message(packet, 9, &m);
}

static void feed(struct st_importer* m, const struct graph* g) {
  struct message content = {0}, packet = begin_packet(SEQUENCE, 10);
  uint8_t data[sizeof packet.data + 16];
  add_number(&content, 1, PID);
  for (uint32_t i = 1; i <= g->objects; i++)
    add_object(&content, g, i);
  for (uint32_t i = 1; i <= CLASSES; i++)
    add_class(&content, i);
  add_message(&packet, ST_FIELD_HEAP_GRAPH, &content);
  uint8_t* end = st_put_bytes_field(data, 1, packet.data, packet.size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
  CHECK(st_importer_finish(m));
}

static uint32_t class_id(struct st_importer* m, uint32_t row) {
  size_t size;
  st_string name =
      (st_string)st_table_get(&m->storage.tables[ST_HEAP_CLASS_TABLE], row,
                              ST_HEAP_CLASS_name)
          .i;
  return (uint32_t)(st_string_text(&m->storage.strings, name, &size)[1] - '0');
}

static void check(const struct graph* g) {
  struct st_importer* m = st_importer_new();
  struct st_heap_classes found = {0};
  int64_t objects = 0, sizes = 0;
  feed(m, g);
  CHECK(st_heap_retained(m, &found));
  for (uint32_t i = 0; i < found.count; i++) {
    CHECK_EQ(found.rows[i].retained,
             retained_by(g, class_id(m, found.rows[i].class_row)));
    CHECK_EQ(found.rows[i].ts, 10);
    objects += found.rows[i].objects;
    sizes += found.rows[i].size;
  }
  CHECK_EQ(sizes, reach(g, 0));
  CHECK_EQ(objects, __builtin_popcountll((uint64_t)sizes));
  free(found.rows);
  st_importer_free(m);
}

static void random_graphs_agree_with_the_model(void) {
  uint64_t random = 7;
  for (int round = 0; round < 3000; round++) {
    struct graph g = {.objects = 2 + (uint32_t)random_below(&random, MOST - 1)};
    for (uint32_t i = 1; i <= g.objects; i++) {
      g.is_root[i] = i == 1 || random_below(&random, 8) == 0;
      for (int r = 0; r < MAX_REFERENCES; r++)
        if (random_below(&random, 2))
          g.references[i][r] = 1 + (uint32_t)random_below(&random, g.objects);
    }
    check(&g);
  }
}

static void trace_without_graphs_has_no_classes(void) {
  struct st_importer* m = st_importer_new();
  struct st_heap_classes found = {0};
  CHECK(st_importer_finish(m));
  CHECK(st_heap_retained(m, &found));
  CHECK_EQ(found.count, 0);
  free(found.rows);
  st_importer_free(m);
}

int main(void) {
  RUN(random_graphs_agree_with_the_model);
  RUN(trace_without_graphs_has_no_classes);
  return 0;
}
