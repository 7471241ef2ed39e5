#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"

static struct st_importer* read(const char* text, size_t piece) {
  struct st_importer* m = st_importer_new();
  for (size_t at = 0, size = strlen(text); at < size; at += piece)
    CHECK(
        st_importer_feed(m, text + at, piece < size - at ? piece : size - at));
  CHECK(st_importer_finish(m));
  return m;
}

static void line_is_read_in_pieces_of_any_size(void) {
  static const char kLines[] =
      "cpus=2\n"
      "a-b-7    (    7) [001] d..1  1.000001: print: B|7|x\n"
      "a-b-7    (    7) [001] d..1  1.000003: print: E|7\n"
      "a-b-7    (    7) [001] d..1  1.000004: print: B|7|not ended by a "
      "newline";
  for (size_t piece = 40; piece < sizeof kLines; piece += 13) {
    struct st_importer* m = read(kLines, piece);
    CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 1);
    CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur) / 1000, 2);
    CHECK(is_text(m, ST_THREAD_TABLE, 1, ST_THREAD_name, "a-b"));
    st_importer_free(m);
  }
}

static void lines_in_another_form_are_counted(void) {
  static const char* const kLines[] = {
      "x",
      "x-1 [001] 1.5 print: B|1|x",
      "x-1 (1 [001 1.5: print: B|1|x",
      "x-99999999999 [001] 1.5: print: B|1|x",
      "x-1 [9999] 1.5: print: B|1|x",
      "x-1 [001] ......... 1.5: print: B|1|x",
      "x-1 [001] 111111111111111111111.5: print: B|1|x",
      "x-1 [001] 1.5: print",
  };
  for (size_t i = 0; i < sizeof kLines / sizeof *kLines; i++) {
    char text[128];
    snprintf(text, sizeof text, "cpus=2\n%s\n", kLines[i]);
    struct st_importer* m = read(text, sizeof text);
    CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 0);
    CHECK_EQ(m->ftrace.atrace_errors, 1);
    st_importer_free(m);
  }
}

/* A line without an end takes no more memory than the longest line. */
static void long_line_is_cut(void) {
  struct st_importer* m = st_importer_new();
  char piece[4096];
  memset(piece, ' ', sizeof piece);
  for (int i = 0; i < 100; i++)
    CHECK(st_importer_feed(m, piece, sizeof piece));
  CHECK(m->systrace.line.capacity < 200000);
  CHECK(st_importer_finish(m));
  st_importer_free(m);
}

int main(void) {
  RUN(line_is_read_in_pieces_of_any_size);
  RUN(lines_in_another_form_are_counted);
  RUN(long_line_is_cut);
  return 0;
}
