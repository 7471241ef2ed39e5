/* Reads stacks from the interned data of a sequence. */
#include "core/fields.h"
#include "importer.h"
#include "messages.h"

#define INTERNED(name) ST_FIELD_INTERNED_DATA_##name

enum {
  /* Mapping */
  BUILD_ID = 2,
  START_OFFSET = 3,
  START = 4,
  END = 5,
  LOAD_BIAS = 6,
  PATH = 7,
  EXACT_OFFSET = 8,
  /* Frame */
  FUNCTION = 2,
  MAPPING = 3,
  REL_PC = 4,
  /* Callstack */
  FRAMES = 2,
  /* InternedString */
  TEXT = 2,
};

/* Finds a message; counts the failure if it is missing. */
static const struct st_interned* find(struct st_importer* m,
                                      uint32_t generation, uint32_t field,
                                      uint64_t iid, const char* failure) {
  const struct st_interned* found =
      st_interned_find(&m->sequences, generation, field, iid);
  if (!found)
    st_increment_stat(m, failure, ST_NO_INDEX, "error", "trace", 1);
  return found;
}

static struct st_field field_of(const struct st_interned* message) {
  return (struct st_field){.data = message->data, .size = message->size};
}

/* Returns the place of the row + 1 of an interned message for a process.  It is
 * valid until the next row is stored. */
static uint32_t* row_of(struct st_importer* m, uint32_t upid, uint32_t field,
                        const struct st_interned* message) {
  struct st_key key = {(uint64_t)upid << 32 | field, (uintptr_t)message->data,
                       message->size};
  uint32_t number = st_key_number(&m->stacks.interned_keys, key);
  if (number == m->stacks.interned.size)
    *ST_PUSH(&m->stacks.interned) = 0;
  return &m->stacks.interned.data[number];
}

/* Returns the text of an interned string; an empty one if `iid` is 0, and NULL
 * if it is missing. */
static bool text_of(struct st_importer* m, uint32_t generation, uint32_t field,
                    uint64_t iid, struct st_field* text) {
  *text = (struct st_field){.data = (const uint8_t*)""};
  if (!iid && field != INTERNED(MAPPING_PATHS))
    return true;
  const struct st_interned* found =
      find(m, generation, field, iid, "stackprofile_invalid_string_id");
  if (!found)
    return false;
  struct st_field stored = st_message_find(field_of(found), TEXT);
  if (stored.data)
    *text = stored;
  return true;
}

static st_string read_path(struct st_importer* m, uint32_t generation,
                           struct st_field mapping) {
  struct st_integers parts;
  struct st_field part;
  uint64_t iid;
  st_mapping_name_begin(&m->stacks);
  st_integers_init(&parts, mapping, PATH);
  while (st_integers_next(&parts, &iid) &&
         text_of(m, generation, INTERNED(MAPPING_PATHS), iid, &part))
    st_mapping_name_add(&m->stacks, part.data, part.size);
  return st_mapping_name_end(&m->stacks);
}

static uint32_t mapping_row(struct st_importer* m, uint32_t generation,
                            uint32_t upid, uint64_t iid) {
  struct st_field f[EXACT_OFFSET + 1], build_id;
  const struct st_interned* found = find(m, generation, INTERNED(MAPPINGS), iid,
                                         "stackprofile_invalid_mapping_id");
  if (!found)
    return ST_NO_ROW;
  uint32_t known = *row_of(m, upid, INTERNED(MAPPINGS), found);
  if (known)
    return known - 1;
  struct st_field mapping = field_of(found);
  st_message_read(mapping, f, EXACT_OFFSET + 1);
  st_string path = read_path(m, generation, mapping);
  if (!text_of(m, generation, INTERNED(BUILD_IDS), f[BUILD_ID].value,
               &build_id))
    return ST_NO_ROW;
  uint32_t row = st_mapping_row(
      &m->stacks,
      (struct st_cell[ST_MAPPING_COLUMNS]){
          [ST_MAPPING_build_id] =
              st_text(st_build_id(&m->storage, build_id.data, build_id.size)),
          [ST_MAPPING_exact_offset] = st_int((int64_t)f[EXACT_OFFSET].value),
          [ST_MAPPING_start_offset] = st_int((int64_t)f[START_OFFSET].value),
          [ST_MAPPING_start] = st_int((int64_t)f[START].value),
          [ST_MAPPING_end] = st_int((int64_t)f[END].value),
          [ST_MAPPING_load_bias] = st_int((int64_t)f[LOAD_BIAS].value),
          [ST_MAPPING_name] = st_text(path)},
      upid != ST_NO_ROW);
  *row_of(m, upid, INTERNED(MAPPINGS), found) = row + 1;
  return row;
}

uint32_t st_sequence_mapping(struct st_importer* m, uint32_t generation,
                             uint64_t iid) {
  uint32_t index = m->sequences.generations.data[generation].sequence;
  const struct st_sequence* sequence = &m->sequences.sequences.data[index];
  uint32_t upid = sequence->has_thread
                      ? st_process_get(&m->processes, (uint32_t)sequence->pid)
                      : ST_NO_ROW;
  return mapping_row(m, generation, upid, iid);
}

static uint32_t frame_row(struct st_importer* m, uint32_t generation,
                          uint32_t upid, uint64_t iid) {
  struct st_field f[REL_PC + 1], name;
  const struct st_interned* found = find(m, generation, INTERNED(FRAMES), iid,
                                         "stackprofile_invalid_frame_id");
  if (!found)
    return ST_NO_ROW;
  uint32_t known = *row_of(m, upid, INTERNED(FRAMES), found);
  if (known)
    return known - 1;
  st_message_read(field_of(found), f, REL_PC + 1);
  uint32_t mapping = mapping_row(m, generation, upid, f[MAPPING].value);
  if (mapping == ST_NO_ROW || !text_of(m, generation, INTERNED(FUNCTION_NAMES),
                                       f[FUNCTION].value, &name))
    return ST_NO_ROW;
  uint32_t row =
      st_frame_row(&m->stacks, mapping, f[REL_PC].value,
                   f[FUNCTION].value ? st_field_text(&m->storage, name) : 0);
  *row_of(m, upid, INTERNED(FRAMES), found) = row + 1;
  return row;
}

/* Returns the row of the innermost callsite; ST_NO_ROW if the stack is empty or
 * invalid. */
static uint32_t read_stack(struct st_importer* m, uint32_t generation,
                           uint32_t upid, struct st_field stack) {
  struct st_integers frames;
  uint64_t iid;
  uint32_t callsite = ST_NO_ROW;
  st_integers_init(&frames, stack, FRAMES);
  while (st_integers_next(&frames, &iid)) {
    if (m->stacks.frames_read++ > ST_FRAMES_PER_BYTE * m->fed_bytes) {
      m->counts.parser_errors++;
      return ST_NO_ROW;
    }
    uint32_t frame = frame_row(m, generation, upid, iid);
    if (frame == ST_NO_ROW)
      return ST_NO_ROW;
    callsite = st_callsite_row(&m->stacks, callsite, frame);
  }
  if (callsite == ST_NO_ROW)
    st_increment_stat(m, "stackprofile_empty_callstack", ST_NO_INDEX, "error",
                      "trace", 1);
  return callsite;
}

uint32_t st_interned_stack(struct st_importer* m, uint32_t generation,
                           uint32_t upid, uint64_t iid) {
  const struct st_interned* found =
      find(m, generation, INTERNED(CALLSTACKS), iid,
           "stackprofile_invalid_callstack_id");
  if (!found)
    return ST_NO_ROW;
  uint32_t known = *row_of(m, upid, INTERNED(CALLSTACKS), found);
  if (known)
    return known - 1;
  uint32_t row = read_stack(m, generation, upid, field_of(found));
  if (row != ST_NO_ROW)
    *row_of(m, upid, INTERNED(CALLSTACKS), found) = row + 1;
  return row;
}
