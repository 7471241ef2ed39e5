/* Registers TrackDescriptors. */
#include "tracks.h"

#include <stdlib.h>

#include "core/decoder.h"
#include "core/fields.h"

static void read_process(struct st_track* track, struct st_field process) {
  struct st_decoder d;
  struct st_field f;
  track->kind = ST_TRACK_PROCESS;
  st_decoder_init(&d, process.data, process.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_PROCESS_DESCRIPTOR_PID)
      track->pid = (uint32_t)f.value;
  }
}

bool st_tid_is_sandboxed(struct st_field chrome_thread) {
  enum { IS_SANDBOXED = 3 };
  struct st_decoder d;
  struct st_field f;
  bool is_sandboxed = false;
  st_decoder_init(&d, chrome_thread.data, chrome_thread.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == IS_SANDBOXED)
      is_sandboxed = f.value != 0;
  }
  return is_sandboxed;
}

static void read_thread(struct st_track* track, struct st_field thread,
                        bool is_sandboxed) {
  struct st_decoder d;
  struct st_field f;
  track->kind = ST_TRACK_THREAD;
  track->pid = track->tid = 0;
  st_decoder_init(&d, thread.data, thread.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_THREAD_DESCRIPTOR_PID)
      track->pid = (uint32_t)f.value;
    else if (f.number == ST_FIELD_THREAD_DESCRIPTOR_TID)
      track->tid = (int64_t)f.value;
  }
  if (is_sandboxed)
    track->tid = st_sandboxed_tid(track->tid, track->pid);
}

/* Joins categories by commas. */
static st_string joined(struct st_storage* s, st_string first,
                        struct st_field f) {
  ST_ARRAY(char) text = {0};
  size_t size = 0;
  const char* chars = first ? st_string_text(&s->strings, first, &size) : "";
  ST_RESERVE(&text, size + f.size + 1);
  for (size_t i = 0; i < size; i++)
    *ST_PUSH(&text) = chars[i];
  if (first)
    *ST_PUSH(&text) = ',';
  for (size_t i = 0; i < f.size; i++)
    *ST_PUSH(&text) = (char)f.data[i];
  st_string id = st_string_add(&s->strings, text.data, text.size);
  free(text.data);
  return id;
}

static st_string field_text(struct st_storage* s, struct st_field f) {
  return f.data ? st_string_add(&s->strings, f.data, f.size) : 0;
}

static st_string unit_name(struct st_storage* s, uint64_t unit) {
  static const char* const kUnits[] = {NULL, "ns", "count", "bytes"};
  bool known = unit >= 1 && unit <= 3;
  return known ? st_intern(s, kUnits[unit]) : 0;
}

static void read_counter(struct st_storage* s, struct st_track* track,
                         struct st_field counter) {
  struct st_decoder d;
  struct st_field f;
  uint64_t type = 0;
  st_string unit = 0, custom = 0;
  track->is_counter = true;
  st_decoder_init(&d, counter.data, counter.size);
  while (st_decoder_next(&d, &f)) {
    switch (f.number) {
      case ST_FIELD_COUNTER_DESCRIPTOR_TYPE:
        type = f.value;
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_CATEGORIES:
        if (f.data)
          track->category = joined(s, track->category, f);
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_UNIT:
        unit = unit_name(s, f.value);
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_UNIT_NAME:
        custom = field_text(s, f);
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_UNIT_MULTIPLIER:
        track->multiplier = f.value;
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_IS_INCREMENTAL:
        track->is_incremental = f.value != 0;
        break;
      case ST_FIELD_COUNTER_DESCRIPTOR_Y_AXIS_SHARE_KEY:
        track->share_key = field_text(s, f);
        break;
      default:
        break;
    }
  }
  track->unit = unit ? unit : custom;
  if (type == ST_ENUM_COUNTER_DESCRIPTOR_COUNTER_THREAD_TIME_NS) {
    track->builtin = st_intern(s, "thread_time");
    track->unit = st_intern(s, "ns");
  } else if (type ==
             ST_ENUM_COUNTER_DESCRIPTOR_COUNTER_THREAD_INSTRUCTION_COUNT) {
    track->builtin = st_intern(s, "thread_instruction_count");
    track->unit = st_intern(s, "count");
  }
  if (!track->name)
    track->name = track->builtin;
}

static void set_merge(struct st_track* track, uint64_t behavior) {
  if (behavior == ST_ENUM_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR_NONE)
    track->merge = ST_MERGE_NONE;
  else if (behavior ==
           ST_ENUM_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY)
    track->merge = ST_MERGE_BY_KEY;
}

static void read_field(struct st_storage* s, struct st_track* track,
                       struct st_field f) {
  switch (f.number) {
    case ST_FIELD_TRACK_DESCRIPTOR_PARENT_UUID:
      track->parent = f.value;
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_DESCRIPTION:
      track->description = field_text(s, f);
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_DISALLOW_MERGING_WITH_SYSTEM_TRACKS:
      track->is_separate = f.value != 0;
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_CHILD_ORDERING:
      track->child_ordering = f.value <= 3 ? (uint8_t)f.value : 0;
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_SIBLING_ORDER_RANK:
      track->has_rank = true;
      track->rank = (int32_t)f.value;
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR:
      set_merge(track, f.value);
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_SIBLING_MERGE_KEY:
      track->is_key_text = true;
      track->key = field_text(s, f);
      break;
    case ST_FIELD_TRACK_DESCRIPTOR_SIBLING_MERGE_KEY_INT:
      track->key_number = (int64_t)f.value;
      break;
    default:
      break;
  }
}

/* Reads the fields that other fields depend on: the name, then the counter. */
static void read_kinds(struct st_storage* s, struct st_track* track,
                       const uint8_t* data, size_t size) {
  st_string names[3] = {0};
  struct st_field thread = {0}, process = {0}, counter = {0};
  struct st_decoder d;
  struct st_field f, chrome_thread = {0};
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACK_DESCRIPTOR_NAME)
      names[0] = field_text(s, f);
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_STATIC_NAME)
      names[1] = field_text(s, f);
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_ATRACE_NAME)
      names[2] = field_text(s, f);
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_THREAD && f.data)
      thread = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_PROCESS && f.data)
      process = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_COUNTER && f.data)
      counter = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_CHROME_THREAD && f.data)
      chrome_thread = f;
    else if (f.number == ST_FIELD_TRACK_DESCRIPTOR_UUID)
      track->uuid = f.value;
  }
  track->name = names[0] ? names[0] : names[1] ? names[1] : names[2];
  if (thread.data)
    read_thread(track, thread, st_tid_is_sandboxed(chrome_thread));
  else if (process.data)
    read_process(track, process);
  else if (counter.data)
    read_counter(s, track, counter);
}

static bool is_same(const struct st_track* a, const struct st_track* b) {
  return a->parent == b->parent && a->kind == b->kind && a->pid == b->pid &&
         a->tid == b->tid && a->is_counter == b->is_counter &&
         a->category == b->category && a->multiplier == b->multiplier &&
         a->is_incremental == b->is_incremental && a->merge == b->merge &&
         a->key == b->key && a->key_number == b->key_number;
}

static bool has_uuid(const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACK_DESCRIPTOR_UUID)
      return true;
  }
  return false;
}

static bool is_valid(const struct st_track* track) {
  if (track->kind == ST_TRACK_THREAD && (!track->pid || !track->tid))
    return false;
  if (track->kind == ST_TRACK_PROCESS && !track->pid)
    return false;
  return track->uuid || !track->parent;
}

bool st_tracks_register(struct st_tracks* t, const uint8_t* data, size_t size) {
  struct st_track track = {0};
  struct st_decoder d;
  struct st_field f;
  if (!has_uuid(data, size))
    return false;
  read_kinds(t->storage, &track, data, size);
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f))
    read_field(t->storage, &track, f);
  if (!is_valid(&track))
    return false;
  uint32_t* index = st_map_at(&t->by_uuid, st_tracks_key(t, track.uuid));
  if (!*index) {
    ST_RESERVE(&t->tracks, 1);
    *ST_PUSH(&t->tracks) = track;
    *index = t->tracks.size;
    return true;
  }
  struct st_track* first = &t->tracks.data[*index - 1];
  if (!is_same(first, &track))
    return false;
  /* The first name stays, as slices are merged by it. */
  if (track.name && (!first->name || track.merge == ST_MERGE_NONE))
    first->name = track.name;
  return true;
}
