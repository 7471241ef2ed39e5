#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum { SEQUENCE = 3, PID = 40 };

static void feed(struct st_importer* m, const struct message* packet) {
  uint8_t data[sizeof packet->data + 16];
  uint8_t* end = st_put_bytes_field(data, 1, packet->data, packet->size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
}

static void feed_graph(struct st_importer* m, const struct message* graph) {
  struct message packet = begin_packet(SEQUENCE, 10);
  add_message(&packet, ST_FIELD_HEAP_GRAPH, graph);
  feed(m, &packet);
}

static struct message begin_graph(void) {
  struct message graph = {0};
  add_number(&graph, 1, PID);
  return graph;
}

/* Adds an object with a reference to another one; 0 is none. */
static void add_object(struct message* graph, uint64_t id, uint64_t class_id,
                       uint64_t owned) {
  struct message object = {0};
  uint8_t ids[] = {(uint8_t)owned};
  add_number(&object, 1, id);
  add_number(&object, 2, class_id);
  add_bytes(&object, 5, ids, sizeof ids);
  add_message(graph, 2, &object);
}

static void add_class(struct message* graph, uint64_t id, const char* name,
                      uint64_t superclass, uint64_t field) {
  struct message c = {0};
  add_number(&c, 1, id);
  add_text(&c, 3, name);
  add_number(&c, 4, 16);
  add_number(&c, 5, superclass);
  if (field)
    add_number(&c, 6, field);
  add_message(graph, 9, &c);
}

static void add_text_of(struct message* graph, uint32_t field, uint64_t iid,
                        const char* text) {
  struct message string = {0};
  add_number(&string, 1, iid);
  add_text(&string, 2, text);
  add_message(graph, field, &string);
}

static void add_root(struct message* graph, uint64_t id) {
  struct message root = {0};
  add_number(&root, 1, id);
  add_number(&root, 2, 1);
  add_message(graph, 7, &root);
}

static int64_t object(const struct st_importer* m, uint32_t row,
                      uint32_t column) {
  return get(m, ST_HEAP_OBJECT_TABLE, row, column);
}

static void objects_are_reached_from_roots(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph();
  add_object(&graph, 1, 7, 2);
  add_object(&graph, 2, 7, 1);
  add_object(&graph, 3, 7, 1);
  add_class(&graph, 7, "node", 0, 5);
  add_text_of(&graph, 4, 5, "node node.next");
  add_root(&graph, 1);
  feed_graph(m, &graph);
  CHECK(st_importer_finish(m));
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(object(m, (uint32_t)i, ST_HEAP_OBJECT_self_size), 16);
    CHECK_EQ(object(m, (uint32_t)i, ST_HEAP_OBJECT_reachable), i < 2);
    CHECK_EQ(object(m, (uint32_t)i, ST_HEAP_OBJECT_root_distance),
             i < 2 ? i : -1);
    CHECK(is_text(m, ST_HEAP_REFERENCE_TABLE, (uint32_t)i,
                  ST_HEAP_REFERENCE_field_name, "node.next"));
  }
  CHECK(is_text(m, ST_HEAP_OBJECT_TABLE, 0, ST_HEAP_OBJECT_root_type,
                "ROOT_JNI_GLOBAL"));
  st_importer_free(m);
}

static void flame_graph_has_each_object_once(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph();
  add_object(&graph, 1, 7, 2);
  add_object(&graph, 2, 7, 3);
  add_object(&graph, 3, 7, 1);
  add_class(&graph, 7, "node", 0, 0);
  add_root(&graph, 1);
  feed_graph(m, &graph);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_HEAP_TREE_TABLE].rows, 3);
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_EQ(get(m, ST_HEAP_TREE_TABLE, i, ST_HEAP_TREE_depth), i);
    CHECK_EQ(get(m, ST_HEAP_TREE_TABLE, i, ST_HEAP_TREE_cumulative_size),
             16 * (3 - (int)i));
  }
  CHECK(is_text(m, ST_HEAP_TREE_TABLE, 0, ST_HEAP_TREE_name,
                "node [ROOT_JNI_GLOBAL]"));
  st_importer_free(m);
}

/* A class without fields that is its own superclass names no field. */
static void loop_of_superclasses_ends(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph();
  add_object(&graph, 1, 7, 1);
  add_class(&graph, 7, "loop", 7, 0);
  feed_graph(m, &graph);
  CHECK(st_importer_finish(m));
  CHECK_EQ(get(m, ST_HEAP_REFERENCE_TABLE, 0, ST_HEAP_REFERENCE_field_name),
           -99);
  CHECK_EQ(st_get_stat(m, "heap_graph_malformed_packet", 1), 1);
  st_importer_free(m);
}

static void object_without_a_class_is_counted(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph();
  add_object(&graph, 1, 7, 9);
  add_root(&graph, 1);
  feed_graph(m, &graph);
  CHECK(st_importer_finish(m));
  CHECK_EQ(object(m, 1, ST_HEAP_OBJECT_reachable), 1);
  CHECK_EQ(st_get_stat(m, "heap_graph_malformed_packet", 1), 1);
  st_importer_free(m);
}

static void unfinished_graph_is_kept_and_counted(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph();
  add_object(&graph, 1, 7, 0);
  add_class(&graph, 7, "c", 0, 5);
  add_number(&graph, 5, true);
  add_number(&graph, 6, 3); /* Packets before it are missing. */
  feed_graph(m, &graph);
  CHECK(st_importer_finish(m));
  CHECK_EQ(object(m, 0, ST_HEAP_OBJECT_self_size), 16);
  CHECK_EQ(st_get_stat(m, "heap_graph_non_finalized_graph", ST_NO_INDEX), 1);
  CHECK_EQ(st_get_stat(m, "heap_graph_missing_packet", 0), 1);
  st_importer_free(m);
}

static void names_are_those_of_the_package(void) {
  struct st_importer* m = st_importer_new();
  struct message graph = begin_graph(), mapping = {0}, class_ = {0};
  struct message packet = begin_packet(SEQUENCE, 20);
  add_object(&graph, 1, 7, 0);
  add_class(&graph, 7, "a[]", 0, 0);
  feed_graph(m, &graph);
  add_text(&class_, 1, "a");
  add_text(&class_, 2, "Original");
  add_message(&mapping, 3, &class_);
  add_message(&packet, ST_FIELD_DEOBFUSCATION_MAPPING, &mapping);
  feed(m, &packet);
  CHECK(st_importer_finish(m));
  CHECK(is_text(m, ST_HEAP_CLASS_TABLE, 0, ST_HEAP_CLASS_deobfuscated_name,
                "Original[]"));
  st_importer_free(m);
}

static bool has_package(const char* path, const char* package) {
  struct st_storage s = {0};
  size_t size = 0;
  st_storage_init(&s);
  st_string found = st_package_of_path(&s, path, strlen(path));
  const char* text = st_string_text(&s.strings, found, &size);
  bool is_equal =
      size == strlen(package) && (!size || memcmp(text, package, size) == 0);
  st_storage_free(&s);
  return is_equal;
}

static void packages_are_found_in_paths(void) {
  CHECK(has_package("/data/app/com.a-x==/base.apk", "com.a"));
  CHECK(has_package("/data/app/~~r==/com.a-x==/base.apk", "com.a"));
  CHECK(
      has_package("[anon:dalvik-classes2.dex extracted in memory from "
                  "/data/app/com.a-x/base.apk]",
                  "com.a"));
  CHECK(has_package("/product/app/Maps/Maps.apk",
                    "com.google.android.apps.maps"));
  CHECK(has_package("/data/app/", ""));
  CHECK(has_package("/data/app/~", ""));
  CHECK(has_package("/data/app/com.a/base.apk", ""));
}

int main(void) {
  RUN(objects_are_reached_from_roots);
  RUN(flame_graph_has_each_object_once);
  RUN(loop_of_superclasses_ends);
  RUN(object_without_a_class_is_counted);
  RUN(unfinished_graph_is_kept_and_counted);
  RUN(names_are_those_of_the_package);
  RUN(packages_are_found_in_paths);
  return 0;
}
