/* JSON reader: splits a JSON trace, which arrives in pieces, into events.
 *
 *   [ {event}, {event} ...            a list, whose end may be missing
 *   { "traceEvents": [ ... ], ... }   an object; other members are skipped
 *
 * An event that is complete in a piece is passed on without a copy.  Other
 * events are copied until they are complete.
 *
 * Source: the Trace Event Format of Chromium.
 */
#pragma once

#include "memory.h"

enum st_json_state {
  ST_JSON_START,
  ST_JSON_KEY,    /* Before a key of the object. */
  ST_JSON_NAME,   /* Inside a key. */
  ST_JSON_COLON,  /* Before a value. */
  ST_JSON_OTHER,  /* Inside a value that is skipped. */
  ST_JSON_EVENTS, /* Between events. */
  ST_JSON_EVENT,  /* Inside an event. */
  ST_JSON_END,
};

struct st_json_reader {
  enum st_json_state state;
  bool is_object, in_text, is_escaped, has_time_unit;
  uint32_t depth;
  uint64_t skipped;    /* Unexpected bytes outside of events. */
  ST_ARRAY(char) kept; /* A key, or the start of an event. */
};

typedef void st_json_event(void* context, const char* text, size_t size);

/* Returns whether a file begins like a JSON trace. */
bool st_json_begins(const void* data, size_t size);
/* Reads a piece, and calls `event` with the text of each complete event. */
void st_json_feed(struct st_json_reader* r, const char* data, size_t size,
                  st_json_event* event, void* context);
void st_json_reader_free(struct st_json_reader* r);
