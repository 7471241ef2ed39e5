/* Fuzzes the reader of the kernel's events as text: with the input as it is, and
 * with lines that the input describes, which are mostly valid. */
#define CHECK_ABORTS
#include <string.h>

#include "analysis/importer.h"
#include "check.h"

static const char* const kParts[] = {
    "task",
    "-1 ",
    "-2",
    " (    1)",
    " [001] ",
    " d..1 ",
    "1.5: ",
    "0.25: ",
    "print: ",
    "B|1|x",
    "E|1",
    "sched_switch: ",
    "pid=1 ",
    "prev_pid=1 prev_prio=1 next_pid=2 next_prio=3 ",
    "state=",
    "cpu_id=1 ",
    "4",
    "99999999999",
    " ",
    "|",
    "\n",
    "task-1 (    1) [001] ",
    "cpu_frequency: ",
    "rss_stat: ",
    "size=1 member=1 ",
    "workqueue_execute_start: ",
    "function f",
    "sched_waking: ",
    "comm=",
    "=",
    "sched_blocked_reason: ",
    "iowait=1 caller=f",
    "</script>",
    "<script class=\"trace-data\" "
    "type=\"application/text\">",
    "# TASK-PID",
    "-",
    ".",
    ":"};

static void feed(struct st_importer* m, const void* data, size_t size) {
  CHECK(st_importer_feed(m, data, size));
}

static void finish(struct st_importer* m) {
  CHECK(st_importer_finish(m));
  const struct st_table* t = &m->storage.tables[ST_COUNTER_TABLE];
  for (uint32_t i = 0; i < t->rows; i++)
    CHECK(st_table_get(t, i, ST_COUNTER_track_id).i <
          m->storage.tables[ST_TRACK_TABLE].rows);
  st_importer_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_importer* m = st_importer_new();
  feed(m, "cpus=1\n", 7);
  feed(m, data, size);
  finish(m);
  m = st_importer_new();
  if (size && *data % 2)
    feed(m, "<html>\n", 7);
  else
    feed(m, "cpus=1\n", 7);
  for (size_t i = 0; i < size; i++) {
    const char* part = kParts[data[i] % (sizeof kParts / sizeof *kParts)];
    feed(m, part, strlen(part));
  }
  feed(m, "\n", 1);
  finish(m);
  return 0;
}
