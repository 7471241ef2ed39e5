#include "stacks.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 4096, MAX_BUILD_ID = 256, TEXT_BUILD_ID = 33 };

static uint64_t module_key(st_string path, st_string build_id) {
  return (uint64_t)path << 32 | build_id;
}

static bool is_kernel(struct st_storage* s, const struct st_cell* cells) {
  for (uint32_t i = ST_MAPPING_start; i <= ST_MAPPING_end; i++) {
    if (cells[i].i)
      return false;
  }
  return !cells[ST_MAPPING_exact_offset].i &&
         cells[ST_MAPPING_build_id].i == st_intern(s, "") &&
         cells[ST_MAPPING_name].i == st_intern(s, "/kernel");
}

static struct st_machine_mappings* mappings(struct st_stacks* s) {
  while (s->mappings.size <= s->machine)
    *ST_PUSH(&s->mappings) = (struct st_machine_mappings){0};
  return &s->mappings.data[s->machine];
}

uint32_t st_mapping_row(struct st_stacks* s, struct st_cell* cells,
                        bool is_own) {
  struct st_table* t = &s->storage->tables[ST_MAPPING_TABLE];
  bool has_range = cells[ST_MAPPING_start].i != cells[ST_MAPPING_end].i;
  bool kernel = is_own && is_kernel(s->storage, cells);
  struct st_machine_mappings* known = mappings(s);
  if (kernel && known->kernel)
    return known->kernel - 1;
  *st_map_at(&s->modules, module_key((st_string)cells[ST_MAPPING_name].i,
                                     (st_string)cells[ST_MAPPING_build_id].i)) =
      1;
  if (!kernel && !(is_own && has_range))
    return st_table_intern(t, &known->rows, cells);
  cells[ST_MAPPING_id] = st_int(t->rows);
  uint32_t row = st_table_add(t, cells);
  if (kernel)
    known->kernel = row + 1;
  return row;
}

void st_mapping_name_begin(struct st_stacks* s) {
  s->name.size = 0;
}

void st_mapping_name_add(struct st_stacks* s, const void* text, size_t size) {
  size_t room = MAX_NAME - s->name.size;
  if (!room)
    return;
  size = size < room ? size : room - 1;
  ST_RESERVE(&s->name, size + 1);
  *ST_PUSH(&s->name) = '/';
  if (size)
    memcpy(s->name.data + s->name.size, text, size);
  s->name.size += (uint32_t)size;
}

st_string st_mapping_name_end(struct st_stacks* s) {
  const char* name = s->name.data;
  uint32_t size = s->name.size;
  /* Chrome writes a path as one component. */
  bool is_path = size > 1 && name[0] == '/' && name[1] == '/';
  return st_string_add(&s->storage->strings, size ? name + is_path : "",
                       size - is_path);
}

st_string st_build_id(struct st_storage* s, const void* id, size_t size) {
  static const char kDigits[] = "0123456789abcdef";
  const uint8_t* bytes = id;
  char text[2 * MAX_BUILD_ID];
  if (size == TEXT_BUILD_ID)
    return st_string_add(&s->strings, id, size);
  size = size < MAX_BUILD_ID ? size : MAX_BUILD_ID;
  for (size_t i = 0; i < size; i++) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return st_string_add(&s->strings, text, 2 * size);
}

/* Adds a frame to those of its address. */
static void add_to_place(struct st_stacks* s, uint32_t frame, uint32_t mapping,
                         uint64_t pc) {
  const struct st_table* t = &s->storage->tables[ST_MAPPING_TABLE];
  uint64_t module =
      module_key((st_string)st_table_get(t, mapping, ST_MAPPING_name).i,
                 (st_string)st_table_get(t, mapping, ST_MAPPING_build_id).i);
  uint32_t place =
      st_key_number(&s->place_keys, (struct st_key){module, pc, 0});
  if (place == s->places.size)
    *ST_PUSH(&s->places) = (struct st_place){0};
  *ST_PUSH(&s->previous) = s->places.data[place].last_frame;
  s->places.data[place].last_frame = frame + 1;
}

uint32_t st_frame_row(struct st_stacks* s, uint32_t mapping, uint64_t pc,
                      st_string name) {
  struct st_table* t = &s->storage->tables[ST_FRAME_TABLE];
  struct st_cell cells[ST_FRAME_COLUMNS] = {
      [ST_FRAME_name] = st_text(name),
      [ST_FRAME_mapping] = st_int(mapping),
      [ST_FRAME_rel_pc] = st_int((int64_t)pc),
  };
  uint32_t row = st_table_intern(t, &s->frames, cells);
  if (row == s->previous.size)
    add_to_place(s, row, mapping, pc);
  return row;
}

uint32_t st_callsite_row(struct st_stacks* s, uint32_t parent, uint32_t frame) {
  struct st_table* t = &s->storage->tables[ST_CALLSITE_TABLE];
  int64_t depth = parent == ST_NO_ROW
                      ? 0
                      : st_table_get(t, parent, ST_CALLSITE_depth).i + 1;
  struct st_cell cells[ST_CALLSITE_COLUMNS] = {
      [ST_CALLSITE_depth] = st_int(depth),
      [ST_CALLSITE_parent_id] = st_row(parent),
      [ST_CALLSITE_frame_id] = st_int(frame),
  };
  return st_table_intern(t, &s->callsites, cells);
}

bool st_module_is_known(const struct st_stacks* s, st_string path,
                        st_string build_id) {
  return st_map_get(&s->modules, module_key(path, build_id)) != 0;
}

bool st_stacks_symbolize(struct st_stacks* s, st_string path,
                         st_string build_id, uint64_t pc, uint32_t symbol_set) {
  struct st_key key = {module_key(path, build_id), pc, 0};
  uint32_t place = st_key_number(&s->place_keys, key);
  if (place == s->places.size)
    *ST_PUSH(&s->places) = (struct st_place){0};
  struct st_place* p = &s->places.data[place];
  p->symbol_set = symbol_set;
  p->symbolized = s->previous.size;
  return p->last_frame != 0;
}

void st_stacks_finish(struct st_stacks* s) {
  struct st_table* t = &s->storage->tables[ST_FRAME_TABLE];
  for (uint32_t i = 0; i < s->places.size; i++) {
    const struct st_place* p = &s->places.data[i];
    for (uint32_t frame = p->last_frame; frame;
         frame = s->previous.data[frame - 1]) {
      if (frame <= p->symbolized)
        st_table_set(t, frame - 1, ST_FRAME_symbol_set_id,
                     st_int(p->symbol_set));
    }
  }
}

void st_stacks_free(struct st_stacks* s) {
  for (uint32_t i = 0; i < s->mappings.size; i++)
    st_map_free(&s->mappings.data[i].rows);
  free(s->mappings.data);
  st_map_free(&s->frames);
  st_map_free(&s->callsites);
  st_map_free(&s->modules);
  st_keys_free(&s->place_keys);
  st_keys_free(&s->interned_keys);
  free(s->places.data);
  free(s->previous.data);
  free(s->interned.data);
  free(s->name.data);
}
