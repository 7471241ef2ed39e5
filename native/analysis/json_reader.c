#include "json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "json_text.h"

bool st_json_begins(const void* data, size_t size) {
  const char *at = data, *end = at + size;
  char first[2] = {0};
  for (int i = 0; i < 2 && at < end; at++) {
    if (!st_json_is_space(*at))
      first[i++] = *at;
  }
  if (first[0] == '{')
    return first[1] == '"' || first[1] == '}';
  return first[0] == '[' && (first[1] == '{' || first[1] == ']');
}

static void keep(struct st_json_reader* r, const char* data, size_t size) {
  ST_RESERVE(&r->kept, size);
  if (size)
    memcpy(r->kept.data + r->kept.size, data, size);
  r->kept.size += (uint32_t)size;
}

/* Sets the state, and resets the data of the previous state. */
static void enter(struct st_json_reader* r, enum st_json_state state) {
  r->state = state;
  r->depth = 0;
  r->in_text = r->is_escaped = false;
  r->kept.size = 0;
}

/* Returns the end of the event that continues at `at`; NULL if the event
 * doesn't end in this piece. */
static const char* scan_event(struct st_json_reader* r, const char* at,
                              const char* end) {
  for (; at < end; at++) {
    char c = *at;
    if (r->in_text) {
      if (r->is_escaped)
        r->is_escaped = false;
      else if (c == '\\')
        r->is_escaped = true;
      else if (c == '"')
        r->in_text = false;
    } else if (c == '"') {
      r->in_text = true;
    } else if (c == '{' || c == '[') {
      r->depth++;
    } else if ((c == '}' || c == ']') && --r->depth == 0) {
      return at + 1;
    }
  }
  return NULL;
}

static const char* read_event(struct st_json_reader* r, const char* at,
                              const char* end, st_json_event* event,
                              void* context) {
  const char* last = scan_event(r, at, end);
  if (!last) {
    keep(r, at, (size_t)(end - at));
    return end;
  }
  if (r->kept.size) {
    keep(r, at, (size_t)(last - at));
    event(context, r->kept.data, r->kept.size);
  } else {
    event(context, at, (size_t)(last - at));
  }
  enter(r, ST_JSON_EVENTS);
  return last;
}

/* Skips a character of a value.  The comma or bracket after the value ends
 * it. */
static void skip_character(struct st_json_reader* r, char c) {
  if (r->in_text || c == '"') {
    if (r->is_escaped)
      r->is_escaped = false;
    else if (c == '\\')
      r->is_escaped = true;
    else if (c == '"')
      r->in_text = !r->in_text;
  } else if (c == '{' || c == '[') {
    r->depth++;
  } else if (!r->depth && (c == ',' || c == '}')) {
    enter(r, c == ',' ? ST_JSON_KEY : ST_JSON_END);
  } else if ((c == '}' || c == ']') && r->depth) {
    r->depth--;
  }
}

static bool is_key(const struct st_json_reader* r, const char* key) {
  return r->kept.size == strlen(key) &&
         memcmp(r->kept.data, key, r->kept.size) == 0;
}

static void begin_value(struct st_json_reader* r, char c) {
  bool is_events = c == '[' && is_key(r, "traceEvents");
  r->has_time_unit |= is_key(r, "displayTimeUnit");
  enter(r, is_events ? ST_JSON_EVENTS : ST_JSON_OTHER);
  if (!is_events)
    skip_character(r, c);
}

static void read_name(struct st_json_reader* r, char c) {
  if (c == '"' && !r->is_escaped) {
    r->state = ST_JSON_COLON;
    return;
  }
  r->is_escaped = c == '\\' && !r->is_escaped;
  keep(r, &c, 1);
}

/* Reads a character outside of events. */
static void read_character(struct st_json_reader* r, char c) {
  if (r->state == ST_JSON_OTHER) {
    skip_character(r, c);
  } else if (r->state == ST_JSON_NAME) {
    read_name(r, c);
  } else if (st_json_is_space(c)) {
    return;
  } else if (r->state == ST_JSON_START) {
    r->is_object = c == '{';
    enter(r, r->is_object ? ST_JSON_KEY : ST_JSON_EVENTS);
  } else if (r->state == ST_JSON_KEY) {
    if (c == '"')
      enter(r, ST_JSON_NAME);
    else if (c == '}')
      enter(r, ST_JSON_END);
  } else if (r->state == ST_JSON_COLON) {
    if (c != ':')
      begin_value(r, c);
  } else if (r->state == ST_JSON_EVENTS && c == ']') {
    enter(r, r->is_object ? ST_JSON_KEY : ST_JSON_END);
  } else if (r->state != ST_JSON_EVENTS || c != ',') {
    r->skipped++;
  }
}

void st_json_feed(struct st_json_reader* r, const char* data, size_t size,
                  st_json_event* event, void* context) {
  const char *at = data, *end = data + size;
  while (at < end) {
    if (r->state == ST_JSON_EVENTS && *at == '{')
      enter(r, ST_JSON_EVENT);
    if (r->state == ST_JSON_EVENT)
      at = read_event(r, at, end, event, context);
    else
      read_character(r, *at++);
  }
}

void st_json_reader_free(struct st_json_reader* r) {
  free(r->kept.data);
}
