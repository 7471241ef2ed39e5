/* JSON import: the state that the events of a JSON trace share. */
#pragma once

#include "json_reader.h"
#include "json_text.h"

enum { ST_JSON_MAX_KEY = 4096 };

/* The key of an argument while arguments are added; longer ones are cut. */
struct st_json_key {
  char text[ST_JSON_MAX_KEY], flat[ST_JSON_MAX_KEY];
  size_t size, flat_size;
};

/* A counter's row, whose track is set at the end. */
struct st_json_counter {
  uint32_t row, utid;
  st_string name;
};

struct st_json_import {
  bool is_used;
  struct st_json_reader reader;
  struct st_json_key key;
  ST_ARRAY(struct st_json_counter) counters;
  struct st_map first_names; /* Of asynchronous slices: id to name + 1. */
  uint64_t invalid, unusable;
};
