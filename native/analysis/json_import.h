/* JSON import: the state of the import of a JSON trace. */
#pragma once

#include "arg_path.h"
#include "json_reader.h"
#include "json_text.h"

enum { ST_JSON_MAX_KEY = 4096 };

/* A row of the table counter, whose track is set after the last event. */
struct st_json_counter {
  uint32_t row, utid;
  st_string name;
};

struct st_json_import {
  bool is_used;
  struct st_json_reader reader;
  ST_ARRAY(struct st_json_counter) counters;
  /* Events that can't be read, and events or values that can't be imported. */
  uint64_t invalid, unusable;
  /* Events of old asynchronous slices (S, T, p, F), and of unknown phases. */
  uint64_t lost;
};
