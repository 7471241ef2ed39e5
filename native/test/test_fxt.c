#include <string.h>

#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"

enum { MAX_TRACE_WORDS = 64, EVENT = 4, INSTANT = 0 };

static const uint64_t kMagic = UINT64_C(0x0016547846040010);

struct trace {
  uint64_t words[MAX_TRACE_WORDS];
  size_t count;
};

/* Adds an instant of a thread, with the name "name". */
static void add_instant(struct trace* t, uint64_t ts) {
  const uint64_t kInline = 0x8004;
  uint64_t words[] = {EVENT | 5 << 4 | INSTANT << 16 | kInline << 48, ts, 10,
                      11, 0};
  memcpy(&words[4], "name", 4);
  memcpy(&t->words[t->count], words, sizeof words);
  t->count += sizeof words / sizeof *words;
}

static struct st_importer* begun(void) {
  struct st_importer* m = st_importer_new();
  CHECK(st_importer_feed(m, &kMagic, sizeof kMagic));
  return m;
}

static void feed(struct st_importer* m, const void* data, size_t size,
                 size_t piece) {
  for (size_t at = 0; at < size; at += piece)
    CHECK(st_importer_feed(m, (const char*)data + at,
                           piece < size - at ? piece : size - at));
}

static void records_are_read_in_pieces_of_any_size(void) {
  struct trace t = {.count = 0};
  add_instant(&t, 20);
  add_instant(&t, 10);
  for (size_t piece = 1; piece < 90; piece++) {
    struct st_importer* m = begun();
    feed(m, t.words, t.count * 8, piece);
    CHECK(st_importer_finish(m));
    CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 2);
    CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_ts), 10);
    CHECK(is_text(m, ST_SLICE_TABLE, 0, ST_SLICE_name, "name"));
    CHECK(!m->is_cut_off);
    st_importer_free(m);
  }
}

/* A large record takes no memory, and what comes after it is read. */
static void large_record_is_skipped(void) {
  uint64_t large[1000] = {ST_FXT_LARGE | 1000 << 4};
  struct trace t = {.count = 0};
  add_instant(&t, 10);
  for (size_t piece = 4; piece < 9000; piece = piece * 3 + 1) {
    struct st_importer* m = begun();
    feed(m, large, sizeof large, piece);
    CHECK(m->fxt.reader.kept.capacity < 1024);
    feed(m, t.words, t.count * 8, piece);
    CHECK(st_importer_finish(m));
    CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 1);
    CHECK_EQ(m->counts.unread_packets, 1);
    st_importer_free(m);
  }
}

static void words_without_a_size_are_counted(void) {
  uint64_t zeros[3] = {0};
  struct trace t = {.count = 0};
  add_instant(&t, 10);
  struct st_importer* m = begun();
  feed(m, zeros, sizeof zeros, sizeof zeros);
  feed(m, t.words, t.count * 8 - 3, 1000);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 0);
  CHECK_EQ(m->counts.truncated_bytes, sizeof zeros + t.count * 8 - 3);
  CHECK(m->is_cut_off);
  st_importer_free(m);
}

static void ticks_that_overflow_are_invalid(void) {
  CHECK_EQ(st_fxt_ns(3, 3), 1000000000);
  CHECK_EQ(st_fxt_ns(INT64_MAX, 1000000000), INT64_MAX);
  CHECK_EQ(st_fxt_ns(UINT64_MAX, 1000000000), -1);
  CHECK_EQ(st_fxt_ns(UINT64_MAX, 1), -1);
  CHECK_EQ(st_fxt_ns(1, 0), -1);
}

static void cpu_beyond_the_limit_is_an_error(void) {
  uint64_t words[] = {8 | 4 << 4 | UINT64_C(2000) << 20 | UINT64_C(1) << 60, 10,
                      11, 12};
  struct st_importer* m = begun();
  feed(m, words, sizeof words, sizeof words);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_SCHED_TABLE].rows, 0);
  CHECK_EQ(st_get_stat(m, "fuchsia_invalid_event", ST_NO_INDEX), 1);
  st_importer_free(m);
}

static void providers_of_a_second_file_are_new(void) {
  uint64_t section = UINT64_C(7) << 20 | 2 << 16 | 1 << 4;
  uint64_t info = UINT64_C(7) << 20 | 1 << 16 | 1 << 4;
  struct trace t = {.count = 0};
  add_instant(&t, 10);
  struct st_importer* m = begun();
  feed(m, &info, sizeof info, sizeof info);
  CHECK(st_importer_next_file(m));
  feed(m, &kMagic, sizeof kMagic, sizeof kMagic);
  feed(m, &section, sizeof section, sizeof section);
  feed(m, t.words, t.count * 8, 1000);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 0);
  CHECK_EQ(st_get_stat(m, "fuchsia_invalid_event", ST_NO_INDEX), 1);
  st_importer_free(m);
}

int main(void) {
  RUN(records_are_read_in_pieces_of_any_size);
  RUN(large_record_is_skipped);
  RUN(words_without_a_size_are_counted);
  RUN(ticks_that_overflow_are_invalid);
  RUN(cpu_beyond_the_limit_is_an_error);
  RUN(providers_of_a_second_file_are_new);
  return 0;
}
