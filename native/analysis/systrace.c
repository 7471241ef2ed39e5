#include "systrace.h"

#include <stdlib.h>
#include <string.h>

#include "importer.h"
#include "messages.h"

enum { MAX_LINE = 65536, FIRST_BYTES = 128, MAX_FLAGS = 5, FIELDS = 9 };

struct text {
  const char* data;
  size_t size;
};

/* A line of the trace. */
struct line {
  struct text task, tgid, event, arguments;
  uint32_t tid, cpu;
  double seconds;
};

static bool starts_with(struct text t, const char* prefix) {
  size_t n = strlen(prefix);
  return t.size >= n && memcmp(t.data, prefix, n) == 0;
}

static bool is_equal(struct text t, const char* expected) {
  return t.size == strlen(expected) && starts_with(t, expected);
}

/* Returns the position of a part in the text; NULL if the text doesn't have it.
 */
static const char* find(struct text t, const char* part) {
  for (; t.size >= strlen(part); t.data++, t.size--) {
    if (starts_with(t, part))
      return t.data;
  }
  return NULL;
}

bool st_systrace_begins(const void* data, size_t size) {
  struct text t = {data, size < FIRST_BYTES ? size : FIRST_BYTES};
  return find(t, "# tracer") || starts_with(t, "TRACE:\n") ||
         starts_with(t, "cpus=") || starts_with(t, " ") ||
         starts_with(t, "<!doctype html>") ||
         starts_with(t, "<!DOCTYPE html>") || starts_with(t, "<html>");
}

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static struct text trimmed(struct text t) {
  while (t.size && is_space(*t.data))
    t.data++, t.size--;
  while (t.size && is_space(t.data[t.size - 1]))
    t.size--;
  return t;
}

/* Removes the characters at the begin of the text for which `is` is true, and
 * returns them. */
static struct text take(struct text* t, bool (*is)(char)) {
  struct text taken = {t->data, 0};
  while (t->size && is(*t->data))
    t->data++, t->size--, taken.size++;
  return taken;
}

static bool skip(struct text* t, char c) {
  bool has = t->size && *t->data == c;
  t->data += has;
  t->size -= has;
  return has;
}

static bool is_dash(char c) {
  return c == '-';
}

static bool is_visible(char c) {
  return !is_space(c);
}

static bool is_flag(char c) {
  return is_digit(c) || c == '.' || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/* Reads a decimal number of 32 bits.  Returns false if the text is none. */
static bool read_number(struct text t, int64_t* value) {
  bool is_negative = t.size && *t.data == '-';
  int64_t number = 0;
  for (size_t i = is_negative; i < t.size; i++) {
    if (!is_digit(t.data[i]) || number > UINT32_MAX)
      return false;
    number = number * 10 + (t.data[i] - '0');
  }
  *value = is_negative ? -number : number;
  return t.size > is_negative && number <= UINT32_MAX;
}

/* Reads `seconds: event:`, with spaces before it.  Returns false if the text is
 * something else. */
static bool read_event(struct line* l, struct text t) {
  char seconds[48] = {0};
  take(&t, is_space);
  struct text number = take(&t, is_digit);
  if (!number.size || !skip(&t, '.') || !take(&t, is_digit).size)
    return false;
  number.size = (size_t)(t.data - number.data);
  if (number.size >= sizeof seconds || !skip(&t, ':') ||
      !take(&t, is_space).size)
    return false;
  memcpy(seconds, number.data, number.size);
  l->seconds = strtod(seconds, NULL);
  l->event = take(&t, is_visible);
  while (l->event.size && l->event.data[l->event.size - 1] != ':')
    l->event.size--;
  if (l->event.size < 2)
    return false;
  const char* end = t.data + t.size;
  t.data = l->event.data + l->event.size;
  t.size = (size_t)(end - t.data);
  l->event.size--;
  l->arguments = trimmed(t);
  return true;
}

/* Reads what follows the name of the task.  Returns false if the text is
 * something else. */
static bool read_rest(struct line* l, struct text t) {
  int64_t tid, cpu;
  if (!skip(&t, '-') || !read_number(take(&t, is_digit), &tid) ||
      !take(&t, is_space).size)
    return false;
  if (skip(&t, '('))
    take(&t, is_space);
  l->tgid = take(&t, t.size && is_digit(*t.data) ? is_digit : is_dash);
  skip(&t, ')');
  if (t.size && is_space(*t.data))
    t.data++, t.size--;
  if (!skip(&t, '[') || !read_number(take(&t, is_digit), &cpu) ||
      !skip(&t, ']') || cpu >= ST_MAX_CPUS)
    return false;
  take(&t, is_space);
  l->tid = (uint32_t)tid;
  l->cpu = (uint32_t)cpu;
  size_t flags = 0;
  while (flags < MAX_FLAGS && flags < t.size && is_flag(t.data[flags]))
    flags++;
  for (size_t n = flags + 1; n-- > 0;) {
    if (read_event(l, (struct text){t.data + n, t.size - n}))
      return true;
  }
  return false;
}

static bool read_line(struct line* l, struct text t) {
  for (size_t i = 0; i < t.size; i++) {
    l->task = trimmed((struct text){t.data, i});
    if (t.data[i] == '-' && read_rest(l, (struct text){t.data + i, t.size - i}))
      return true;
  }
  return false;
}

static void queue_line(struct st_importer* m, struct text t) {
  struct line l;
  if (!t.size || starts_with(t, "#"))
    return;
  if (!read_line(&l, t) || !(l.seconds * 1e9 < 9.2e18)) {
    m->ftrace.atrace_errors++;
    return;
  }
  st_sorter_push(&m->sorter, ST_QUEUE_SYSTRACE, 0,
                 (struct st_event){.ts = (int64_t)(l.seconds * 1e9),
                                   .data = (const uint8_t*)t.data,
                                   .size = (uint32_t)t.size});
}

static void read_first_line(struct st_importer* m, struct text t) {
  bool is_html = starts_with(t, "<");
  m->systrace.part = is_html ? ST_SYSTRACE_HTML : ST_SYSTRACE_LINES;
  if (!is_html && !starts_with(t, "cpus=") && !is_equal(t, "TRACE:"))
    queue_line(m, t);
}

static void handle_line(struct st_importer* m, struct text t) {
  enum st_systrace_part* part = &m->systrace.part;
  bool is_end = find(t, "</script>") != NULL;
  if (*part == ST_SYSTRACE_START)
    read_first_line(m, t);
  else if (*part == ST_SYSTRACE_HTML &&
           find(t, "<script class=\"trace-data\" type=\"application/text\">"))
    *part = ST_SYSTRACE_SECTION;
  else if (*part == ST_SYSTRACE_SECTION && is_end)
    *part = ST_SYSTRACE_HTML;
  else if (*part == ST_SYSTRACE_SECTION && starts_with(t, "#") &&
           find(t, "TASK-PID"))
    *part = ST_SYSTRACE_LINES;
  else if (*part == ST_SYSTRACE_LINES && is_end)
    *part = ST_SYSTRACE_END;
  else if (*part == ST_SYSTRACE_LINES)
    queue_line(m, t);
}

void st_read_systrace(struct st_importer* m, const char* data, size_t size) {
  struct st_systrace* s = &m->systrace;
  while (size) {
    const char* end = memchr(data, '\n', size);
    size_t n = end ? (size_t)(end - data) : size;
    size_t room = MAX_LINE - s->line.size;
    size_t kept = n < room ? n : room;
    ST_RESERVE(&s->line, kept + 1);
    memcpy(s->line.data + s->line.size, data, kept);
    s->line.size += (uint32_t)kept;
    if (end) {
      handle_line(m, (struct text){s->line.data, s->line.size});
      s->line.size = 0;
      n++;
    }
    data += n;
    size -= n;
  }
}

/* Returns the value of an argument: `key=value`, or for `name` also a word.  Its
 * data are NULL if there is none. */
static struct text argument(const struct line* l, const char* key) {
  struct text rest = l->arguments;
  while (rest.size) {
    struct text word = take(&rest, is_visible);
    take(&rest, is_space);
    const char* sign = memchr(word.data, '=', word.size);
    size_t n = sign ? (size_t)(sign - word.data) : 0;
    if (sign && is_equal((struct text){word.data, n}, key))
      return (struct text){sign + 1, word.size - n - 1};
    if (!sign && word.size && strcmp(key, "name") == 0)
      return word;
  }
  return (struct text){0};
}

/* Returns the bits of a thread's state, as kernels before 4.14 number them,
 * from its letters. */
static uint64_t state_bits(struct text t) {
  static const struct {
    char letter;
    uint16_t bits;
  } kStates[] = {{'S', 1},     {'D', 2},     {'T', 4},     {'t', 8},
                 {'X', 0x10},  {'Z', 0x20},  {'x', 0x40},  {'K', 0x80},
                 {'W', 0x100}, {'P', 0x200}, {'N', 0x400}, {'I', 0x402},
                 {'+', 0x800}};
  uint64_t bits = 0;
  for (size_t i = 0; i < t.size; i++) {
    for (size_t k = 0; k < sizeof kStates / sizeof *kStates; k++)
      bits |= t.data[i] == kStates[k].letter ? kStates[k].bits : 0;
  }
  return bits;
}

/* The events whose arguments are those of the kernel's events in packets: their
 * fields in FtraceEvent, and the arguments by field.  Required ones come first. */
static const struct {
  const char* event;
  uint16_t field;
  struct {
    const char* key;
    uint8_t field;
    char kind; /* n: number, t: text, s: state of a thread */
    bool is_needed;
  } arguments[FIELDS];
} kEvents[] = {
    {"sched_switch",
     4,
     {{"prev_pid", 2, 'n', true},
      {"prev_prio", 3, 'n', true},
      {"next_pid", 6, 'n', true},
      {"next_prio", 7, 'n', true},
      {"prev_comm", 1, 't', false},
      {"next_comm", 5, 't', false},
      {"prev_state", 4, 's', false}}},
    {"sched_waking", 20, {{"pid", 2, 'n', true}, {"comm", 1, 't', false}}},
    {"cpu_frequency", 11, {{"cpu_id", 2, 'n', true}, {"state", 1, 'n', true}}},
    {"cpu_idle", 13, {{"cpu_id", 2, 'n', true}, {"state", 1, 'n', true}}},
    {"clock_set_rate", 16, {{"state", 2, 'n', true}, {"name", 1, 't', false}}},
    {"clock_enable", 14, {{"state", 2, 'n', true}, {"name", 1, 't', false}}},
    {"clock_disable", 15, {{"state", 2, 'n', true}, {"name", 1, 't', false}}},
    {"cpu_frequency_limits",
     12,
     {{"cpu_id", 3, 'n', true},
      {"max", 2, 'n', false},
      {"max_freq", 2, 'n', false},
      {"min", 1, 'n', false},
      {"min_freq", 1, 'n', false}}},
    {"rss_stat", 313, {{"size", 2, 'n', true}, {"member", 1, 'n', true}}},
};

/* Reads the arguments of an event of the table.  Returns false if one is
 * missing or wrong. */
static bool read_arguments(const struct line* l, size_t event,
                           struct st_field* fields) {
  for (size_t i = 0; i < FIELDS && kEvents[event].arguments[i].key; i++) {
    struct text t = argument(l, kEvents[event].arguments[i].key);
    uint32_t number = kEvents[event].arguments[i].field;
    char kind = kEvents[event].arguments[i].kind;
    int64_t value = 0;
    bool is_valid = kind != 'n' || read_number(t, &value);
    if (!is_valid && kEvents[event].arguments[i].is_needed)
      return false;
    if (!t.data || !is_valid)
      continue;
    fields[number] =
        (struct st_field){.number = number, .value = (uint64_t)value};
    if (kind == 't')
      fields[number].data = (const uint8_t*)t.data,
      fields[number].size = t.size;
    else if (kind == 's')
      fields[number].value = state_bits(t);
  }
  return true;
}

static st_string intern(struct st_importer* m, struct text t) {
  return st_string_add(&m->storage.strings, t.data, t.size);
}

/* Names the thread of a line, and sets its process. */
static uint32_t line_thread(struct st_importer* m, const struct line* l) {
  int64_t tgid;
  uint32_t utid = st_thread_seen(&m->processes, l->tid);
  if (!is_equal(l->task, "<...>"))
    st_thread_set_name(&m->processes, utid, intern(m, l->task), ST_NAME_FTRACE);
  if (read_number(l->tgid, &tgid) && tgid >= 0)
    utid = st_thread_get(&m->processes, l->tid, tgid);
  return utid;
}

static void add_device_counter(struct st_importer* m, int64_t ts,
                               const struct line* l, bool is_zone) {
  int64_t value;
  struct text device = argument(l, is_zone ? "thermal_zone" : "type");
  if (!read_number(argument(l, is_zone ? "temp" : "target"), &value))
    return;
  struct st_field name = {.data = (const uint8_t*)device.data,
                          .size = device.size};
  struct st_fixed_track f = {
      .type = is_zone ? "thermal_temperature" : "cooling_device_counter",
      .name = st_kernel_name(m, name, "",
                             is_zone ? " Temperature" : " Cooling Device"),
      .is_counter = true,
      .dimensions = {{is_zone ? "thermal_zone" : "linux_device",
                      .text = intern(m, device)}}};
  st_kernel_counter(m, ts, &f, (double)value, NULL, 0);
}

static void set_blocked(struct st_importer* m, const struct line* l) {
  int64_t tid, is_io;
  if (read_number(argument(l, "pid"), &tid) &&
      read_number(argument(l, "iowait"), &is_io))
    st_sched_blocked(&m->sched, st_thread_seen(&m->processes, (uint32_t)tid),
                     is_io != 0, intern(m, argument(l, "caller")));
}

static void begin_work(struct st_importer* m, int64_t ts, uint32_t utid,
                       const struct line* l) {
  static const char kFunction[] = "function ";
  const char* at = find(l->arguments, kFunction);
  if (!at)
    return;
  at += sizeof kFunction - 1;
  struct text name = {at, (size_t)(l->arguments.data + l->arguments.size - at)};
  st_kernel_begin(m, ts, -1, st_tracks_thread_row(&m->tracks, utid),
                  "workqueue", intern(m, name), NULL, 0);
}

/* Parses an event that isn't in the table.  Returns false if its kind is
 * unknown. */
static bool parse_other(struct st_importer* m, int64_t ts, uint32_t utid,
                        const struct line* l) {
  if (is_equal(l->event, "tracing_mark_write") || is_equal(l->event, "0") ||
      is_equal(l->event, "print"))
    st_parse_atrace(m, ts, l->tid, (const uint8_t*)l->arguments.data,
                    l->arguments.size);
  else if (is_equal(l->event, "sched_blocked_reason"))
    set_blocked(m, l);
  else if (is_equal(l->event, "workqueue_execute_start"))
    begin_work(m, ts, utid, l);
  else if (is_equal(l->event, "workqueue_execute_end"))
    st_kernel_end(m, ts, st_tracks_thread_row(&m->tracks, utid), "workqueue", 0,
                  NULL, 0);
  else if (is_equal(l->event, "thermal_temperature"))
    add_device_counter(m, ts, l, true);
  else if (is_equal(l->event, "cdev_update"))
    add_device_counter(m, ts, l, false);
  else
    return false;
  return true;
}

void st_parse_systrace(struct st_importer* m, const struct st_event* e) {
  struct line l;
  struct st_field fields[ST_KERNEL_FIELDS] = {0};
  if (!read_line(&l, (struct text){(const char*)e->data, e->size}))
    return;
  uint32_t utid = line_thread(m, &l);
  for (size_t i = 0; i < sizeof kEvents / sizeof *kEvents; i++) {
    if (!is_equal(l.event, kEvents[i].event))
      continue;
    struct st_kernel_event k = {
        .ts = e->ts, .field = kEvents[i].field, .cpu = l.cpu, .pid = l.tid};
    if (read_arguments(&l, i, fields))
      st_parse_kernel_fields(m, &k, fields);
    return;
  }
  m->systrace.unread_lines += !parse_other(m, e->ts, utid, &l);
}
