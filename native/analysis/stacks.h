/* Stacks: the callsites, frames and mappings of profiles, and their symbols.
 *
 *   callsite ──> frame ──> mapping        a callsite is a frame and its callers;
 *      └─> parent callsite                depth 0 is the outermost call
 *
 * Equal rows are stored once, except mappings: these are stored once for each
 * machine, or once for each process if they have a range of addresses.
 *
 * Symbols name the frames at an address of a module (path and build id) that
 * exist when the symbols are parsed.
 */
#pragma once

#include "keys.h"
#include "storage.h"

/* The most frames that are read, in proportion to the size of the trace.
 * Without this limit, a sample of a few bytes could cost a stack of thousands
 * of frames, for one process after the other. */
enum { ST_FRAMES_PER_BYTE = 16 };

/* An address of a module that has frames. */
struct st_place {
  uint32_t last_frame; /* Plus 1. */
  /* The symbols of the frames before `symbolized`. */
  uint32_t symbol_set, symbolized;
};

struct st_machine_mappings {
  struct st_map rows; /* By their content. */
  uint32_t kernel;    /* The mapping of the kernel, plus 1. */
};

struct st_stacks {
  struct st_storage* storage;
  struct st_map frames, callsites;               /* Rows by their content. */
  ST_ARRAY(struct st_machine_mappings) mappings; /* By machine. */
  uint32_t machine;      /* The number of the machine in use. */
  struct st_map modules; /* Path and build id of a mapping to 1. */
  struct st_keys place_keys;
  ST_ARRAY(struct st_place) places;
  ST_ARRAY(uint32_t) previous; /* The place's frame before each frame, + 1. */
  /* The rows of interned messages: a process and a message to row + 1. */
  struct st_keys interned_keys;
  ST_ARRAY(uint32_t) interned;
  uint64_t frames_read;
  ST_ARRAY(char) name; /* Of the mapping that is being read. */
};

/* Returns the row of a mapping; its cells except the id are set. `is_own` says
 * that it belongs to one process. */
uint32_t st_mapping_row(struct st_stacks* s, struct st_cell* cells,
                        bool is_own);
/* These functions make the name of a mapping from the components of its path.
 * Characters beyond 4,096 are left out. */
void st_mapping_name_begin(struct st_stacks* s);
void st_mapping_name_add(struct st_stacks* s, const void* text, size_t size);
st_string st_mapping_name_end(struct st_stacks* s);
/* Returns a build id as text: hexadecimal digits.  Ids of 33 bytes are text. */
st_string st_build_id(struct st_storage* s, const void* id, size_t size);
uint32_t st_frame_row(struct st_stacks* s, uint32_t mapping, uint64_t pc,
                      st_string name);
/* `parent` is ST_NO_ROW at the outermost call. */
uint32_t st_callsite_row(struct st_stacks* s, uint32_t parent, uint32_t frame);
/* Returns whether a mapping has this path and build id. */
bool st_module_is_known(const struct st_stacks* s, st_string path,
                        st_string build_id);
/* Assigns a set of symbols to the frames at an address.  Returns false if there
 * are none. */
bool st_stacks_symbolize(struct st_stacks* s, st_string path,
                         st_string build_id, uint64_t pc, uint32_t symbol_set);
/* Stores the symbols of frames. */
void st_stacks_finish(struct st_stacks* s);
void st_stacks_free(struct st_stacks* s);
