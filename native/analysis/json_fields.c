#include "json_fields.h"

#include <string.h>

/* Converts microseconds, which may be a number or a text with a number, to
 * nanoseconds.  Returns false if the value is neither. */
static bool read_time(struct st_json value, int64_t* ns) {
  if (value.kind == ST_JSON_TEXT)
    value = st_json_number(value);
  if (value.kind == ST_JSON_INT) {
    *ns = (int64_t)((uint64_t)value.i * 1000);
    return true;
  }
  double us = value.f * 1000;
  if (value.kind != ST_JSON_REAL || !(us > -9.2e18 && us < 9.2e18))
    return false;
  /* The product of a large whole number isn't exact. */
  if (value.f == (double)(int64_t)value.f) {
    *ns = (int64_t)value.f * 1000;
    return true;
  }
  /* Rounded to the nearest integer; halves are rounded away from 0. */
  *ns = (int64_t)(us + (us < 0 ? -0.5 : 0.5));
  return true;
}

static struct st_json_id read_id(struct st_json value) {
  struct st_json_id id = {
      .is_known = value.kind == ST_JSON_TEXT || value.kind == ST_JSON_INT,
      .is_text = value.kind == ST_JSON_TEXT,
      .text = value};
  if (value.kind == ST_JSON_INT)
    id.number = (uint64_t)value.i;
  return id;
}

static void read_id2(struct st_json_fields* e, struct st_json value) {
  struct st_json_members in = st_json_members(value);
  struct st_json key, member;
  while (st_json_next(&in, &key, &member)) {
    if (st_json_is(key, "local"))
      e->local_id = read_id(member);
    else if (st_json_is(key, "global"))
      e->global_id = read_id(member);
  }
}

static char read_character(struct st_json value) {
  return value.kind == ST_JSON_TEXT && value.size ? *value.data : 0;
}

static bool is_true(struct st_json value) {
  return value.kind == ST_JSON_BOOL && value.i;
}

/* Reads a member of an event.  Returns false if it is invalid. */
static bool read_member(struct st_json_fields* e, struct st_json key,
                        struct st_json value) {
  if (st_json_is(key, "ph"))
    e->phase = read_character(value);
  else if (st_json_is(key, "ts"))
    return e->has_ts = read_time(value, &e->ts);
  else if (st_json_is(key, "dur"))
    return e->has_dur = read_time(value, &e->dur);
  else if (st_json_is(key, "tts"))
    return e->has_tts = read_time(value, &e->tts);
  else if (st_json_is(key, "tdur"))
    return e->has_tdur = read_time(value, &e->tdur);
  else if (st_json_is(key, "pid"))
    e->pid = value;
  else if (st_json_is(key, "tid"))
    e->tid = value;
  else if (st_json_is(key, "name"))
    e->name = value;
  else if (st_json_is(key, "cat"))
    e->category = value;
  else if (st_json_is(key, "args"))
    e->args = value;
  else if (st_json_is(key, "id"))
    e->id = read_id(value);
  else if (st_json_is(key, "id2"))
    read_id2(e, value);
  else if (st_json_is(key, "bind_id"))
    e->bind_id = read_id(value);
  else if (st_json_is(key, "flow_in"))
    e->flows_in = is_true(value);
  else if (st_json_is(key, "flow_out"))
    e->flows_out = is_true(value);
  else if (st_json_is(key, "bp"))
    e->binds_enclosing = st_json_is(value, "e");
  else if (st_json_is(key, "s") &&
           (st_json_is(value, "p") || st_json_is(value, "g")))
    e->scope = *value.data;
  return true;
}

bool st_json_fields_read(struct st_json_fields* e, const char* text,
                         size_t size) {
  *e = (struct st_json_fields){.scope = 't'};
  if (size < 2 || *text != '{')
    return false;
  struct st_json_members in = {text + 1, text + size - 1, true};
  struct st_json key, value;
  while (st_json_next(&in, &key, &value)) {
    if (!read_member(e, key, value))
      return false;
  }
  while (in.at < in.end && strchr(", \n\r\t", *in.at))
    in.at++;
  e->has_ts |= e->phase == 'M';
  return in.at == in.end && e->phase && e->has_ts;
}

/* Reads the id of a flow, which is a number or a text with hexadecimal
 * digits. */
bool st_json_flow_id(struct st_json_id id, uint64_t* number) {
  *number = id.number;
  if (!id.is_known || !id.is_text)
    return id.is_known;
  const char *at = id.text.data, *end = at + id.text.size;
  *number = 0;
  if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
    at += 2;
  if (at == end || end - at > 16)
    return false;
  for (; at < end; at++) {
    char c = *at;
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                            : 16;
    if (digit == 16)
      return false;
    *number = *number << 4 | digit;
  }
  return true;
}
