#include "tracks.h"

#include <stdlib.h>

enum { MAX_ANCESTORS = 100 };

void st_tracks_init(struct st_tracks* t, struct st_storage* s,
                    struct st_arg_sets* sets, struct st_processes* p) {
  *t = (struct st_tracks){.storage = s, .arg_sets = sets, .processes = p};
}

struct st_track* st_tracks_find(struct st_tracks* t, uint64_t uuid) {
  uint32_t index = st_map_get(&t->by_uuid, st_tracks_key(t, uuid));
  return index ? &t->tracks.data[index - 1] : NULL;
}

static struct st_track* invent(struct st_tracks* t, uint64_t uuid) {
  struct st_track track = {.uuid = uuid};
  if (!uuid)
    track.name = st_intern(t->storage, "Default Track");
  ST_RESERVE(&t->tracks, 1);
  *st_map_at(&t->by_uuid, st_tracks_key(t, uuid)) = t->tracks.size + 1;
  struct st_track* added = ST_PUSH(&t->tracks);
  *added = track;
  return added;
}

static void resolve_thread(struct st_tracks* t, struct st_track* track) {
  uint32_t mark = (uint32_t)(track - t->tracks.data) + 1;
  uint32_t utid = st_thread_get(t->processes, track->tid, track->pid);
  uint32_t* descriptor = &t->processes->threads.data[utid].descriptor;
  if (*descriptor && *descriptor != mark) {
    utid = st_thread_restart(t->processes, utid);
    descriptor = &t->processes->threads.data[utid].descriptor;
  }
  *descriptor = mark;
  track->scope = ST_SCOPE_THREAD;
  track->owner = utid;
  track->is_root = true;
}

static void resolve_process(struct st_tracks* t, struct st_track* track) {
  uint32_t mark = (uint32_t)(track - t->tracks.data) + 1;
  uint32_t upid = st_process_get(t->processes, track->pid);
  uint32_t* descriptor = &t->processes->processes.data[upid].descriptor;
  if (*descriptor && *descriptor != mark) {
    upid = st_process_restart(t->processes, track->pid);
    descriptor = &t->processes->processes.data[upid].descriptor;
  }
  *descriptor = mark;
  track->scope = ST_SCOPE_PROCESS;
  track->owner = upid;
  track->is_root = true;
}

static void resolve_one(struct st_tracks* t, struct st_track* track,
                        const struct st_track* parent) {
  if (track->kind == ST_TRACK_THREAD) {
    resolve_thread(t, track);
  } else if (track->kind == ST_TRACK_PROCESS) {
    resolve_process(t, track);
  } else if (parent) {
    track->scope = parent->scope;
    track->owner = parent->owner;
  } else {
    track->is_root = !track->uuid;
  }
  track->is_resolved = true;
}

/* Resolves a track, but first its ancestors: the topmost one, then the next. */
struct st_track* st_tracks_resolve(struct st_tracks* t, uint64_t uuid) {
  struct st_track* track = st_tracks_find(t, uuid);
  if (!track) {
    track = invent(t, uuid);
    resolve_one(t, track, NULL);
  }
  if (track->is_resolved || track->is_broken)
    return track->is_broken ? NULL : track;
  uint64_t chain[MAX_ANCESTORS];
  uint32_t depth = 0;
  const struct st_track* parent = NULL;
  struct st_track* at = track;
  while (at && !at->is_resolved && !at->is_broken && depth < MAX_ANCESTORS) {
    chain[depth++] = at->uuid;
    if (!at->parent)
      break;
    at = st_tracks_find(t, at->parent);
  }
  bool is_rooted = at && !at->is_broken && (at->is_resolved || !at->parent);
  if (!is_rooted) {
    track->is_broken = true;
    return NULL;
  }
  parent = at->is_resolved ? at : NULL;
  while (depth > 0) {
    at = st_tracks_find(t, chain[--depth]);
    resolve_one(t, at, parent);
    parent = at;
  }
  return track;
}

/* The functions below build the list of arguments in t->arguments. */
static void arg_int(struct st_tracks* t, const char* key, enum st_arg_type type,
                    int64_t value) {
  st_arg_add_int(&t->arguments, st_intern(t->storage, key), type, value);
}

static void arg_text(struct st_tracks* t, const char* key, st_string text) {
  if (text)
    st_arg_add_text(&t->arguments, st_intern(t->storage, key), text);
}

static uint32_t store_arguments(struct st_tracks* t) {
  uint32_t set = st_arg_sets_add(t->arg_sets, t->storage, &t->arguments);
  st_arg_list_clear(&t->arguments);
  return set;
}

static void arg_owner(struct st_tracks* t, const struct st_track* track) {
  if (track->scope != ST_SCOPE_GLOBAL)
    arg_int(t, track->scope == ST_SCOPE_THREAD ? "utid" : "upid", ST_ARG_INT,
            track->owner);
}

static uint32_t source_arguments(struct st_tracks* t,
                                 const struct st_track* track) {
  static const char* const kOrderings[] = {NULL, "lexicographic",
                                           "chronological", "explicit"};
  arg_text(t, "source", st_intern(t->storage, "descriptor"));
  arg_int(t, "trace_id", ST_ARG_INT, (int64_t)track->uuid);
  arg_int(t, "is_root_in_scope", ST_ARG_BOOL, track->is_root);
  arg_text(t, "category", track->category);
  arg_text(t, "builtin_counter_type", track->builtin);
  arg_text(t, "y_axis_share_key", track->share_key);
  if (track->uuid && st_map_get(&t->with_first, st_tracks_key(t, t->sequence)))
    arg_int(t, "has_first_packet_on_sequence", ST_ARG_BOOL, 1);
  if (track->child_ordering)
    arg_text(t, "child_ordering",
             st_intern(t->storage, kOrderings[track->child_ordering]));
  if (track->has_rank)
    arg_int(t, "sibling_order_rank", ST_ARG_INT, track->rank);
  arg_text(t, "description", track->description);
  return store_arguments(t);
}

/* Adds a row: sets the cells that all kinds of tracks have. */
static uint32_t add_row(struct st_tracks* t, const char* type, st_string name,
                        uint8_t scope, uint32_t owner, struct st_cell cells[]) {
  struct st_table* table = &t->storage->tables[ST_TRACK_TABLE];
  cells[ST_TRACK_id] = st_int(table->rows);
  cells[ST_TRACK_type] = st_text(st_intern(t->storage, type));
  cells[ST_TRACK_name] = st_text(name);
  cells[ST_TRACK_machine_id] = st_machine_cell(t->machine);
  if (!cells[ST_TRACK_event_type].valid)
    cells[ST_TRACK_event_type] = st_text(st_intern(t->storage, "slice"));
  if (scope == ST_SCOPE_THREAD)
    cells[ST_TRACK_utid] = st_int(owner);
  if (scope == ST_SCOPE_PROCESS)
    cells[ST_TRACK_upid] = st_int(owner);
  return st_table_add(table, cells);
}

uint32_t st_tracks_thread_row(struct st_tracks* t, uint32_t utid) {
  uint32_t* row = st_map_at(&t->by_thread, utid);
  if (!*row) {
    struct st_cell cells[ST_TRACK_COLUMNS] = {0};
    arg_int(t, "utid", ST_ARG_INT, utid);
    cells[ST_TRACK_dimension_arg_set_id] = st_row(store_arguments(t));
    *row = add_row(t, "thread_execution", 0, ST_SCOPE_THREAD, utid, cells) + 1;
  }
  return *row - 1;
}

static const char* type_name(const struct st_track* track, bool is_counter,
                             bool is_merged) {
  static const char* const kTypes[3][3] = {
      {"global_track_event", "global_counter_track_event",
       "global_merged_track_event"},
      {"process_track_event", "process_counter_track_event",
       "process_merged_track_event"},
      {"thread_track_event", "thread_counter_track_event",
       "thread_merged_track_event"}};
  return kTypes[track->scope][is_counter ? 1 : is_merged ? 2 : 0];
}

static uint32_t parent_row(struct st_tracks* t, const struct st_track* track);

/* Adds the row of a track that isn't merged. */
static uint32_t add_single(struct st_tracks* t, struct st_track* track,
                           uint32_t parent) {
  struct st_cell cells[ST_TRACK_COLUMNS] = {0};
  arg_owner(t, track);
  arg_int(t, "track_uuid", ST_ARG_INT, (int64_t)track->uuid);
  cells[ST_TRACK_dimension_arg_set_id] = st_row(store_arguments(t));
  cells[ST_TRACK_source_arg_set_id] = st_row(source_arguments(t, track));
  cells[ST_TRACK_parent_id] = st_row(parent);
  if (track->is_counter) {
    cells[ST_TRACK_event_type] = st_text(st_intern(t->storage, "counter"));
    cells[ST_TRACK_counter_unit] = st_text(track->unit);
  }
  return add_row(t, type_name(track, track->is_counter, false), track->name,
                 track->scope, track->owner, cells);
}

static uint64_t merge_key(const struct st_tracks* t,
                          const struct st_track* track, st_string name) {
  uint64_t key = st_mix(st_tracks_key(t, track->parent) ^ track->scope);
  key = st_mix(key ^ ((uint64_t)track->owner << 8 | track->merge));
  if (track->merge == ST_MERGE_BY_KEY)
    return st_mix(
        key ^ (track->is_key_text ? track->key : (uint64_t)track->key_number));
  return st_mix(key ^ name);
}

static struct st_track_group* group_of(struct st_tracks* t,
                                       struct st_track* track,
                                       st_string event_name) {
  if (!track->group) {
    if (!track->name)
      track->name = event_name;
    uint32_t* group =
        st_map_at(&t->by_merge_key, merge_key(t, track, track->name));
    if (!*group) {
      *ST_PUSH(&t->groups) = (struct st_track_group){0};
      *group = t->groups.size;
    }
    track->group = *group;
  }
  return &t->groups.data[track->group - 1];
}

static uint32_t add_merged(struct st_tracks* t, struct st_track* track,
                           uint32_t parent, uint32_t place) {
  struct st_cell cells[ST_TRACK_COLUMNS] = {0};
  bool by_key = track->merge == ST_MERGE_BY_KEY;
  arg_owner(t, track);
  arg_int(t, "parent_track_uuid", ST_ARG_INT, (int64_t)track->parent);
  arg_int(t, "merge_key_type", ST_ARG_INT, by_key);
  if (by_key && !track->is_key_text)
    arg_int(t, "merge_key_value", ST_ARG_INT, track->key_number);
  else
    st_arg_add_text(&t->arguments, st_intern(t->storage, "merge_key_value"),
                    by_key ? track->key : track->name);
  arg_int(t, "track_compressor_idx", ST_ARG_INT, place);
  cells[ST_TRACK_dimension_arg_set_id] = st_row(store_arguments(t));
  cells[ST_TRACK_source_arg_set_id] = st_row(source_arguments(t, track));
  cells[ST_TRACK_parent_id] = st_row(parent);
  cells[ST_TRACK_track_group_id] = st_int(track->group - 1);
  return add_row(t, type_name(track, false, true), track->name, track->scope,
                 track->owner, cells);
}

/* Returns the place that is bound to the track, else the first that is free,
 * else a new one. */
static uint32_t find_place(const struct st_track_group* group,
                           const struct st_track* track) {
  if (track->place && group->places[track->place - 1].uuid == track->uuid)
    return track->place - 1;
  for (uint32_t i = 0; i < group->size; i++) {
    if (!group->places[i].depth)
      return i;
  }
  return group->size;
}

static uint32_t merged_row(struct st_tracks* t, struct st_track* track,
                           enum st_use use, st_string event_name) {
  uint32_t parent = parent_row(t, track);
  struct st_track_group* group = group_of(t, track, event_name);
  uint32_t i = find_place(group, track);
  if (i == group->size) {
    if (i == group->capacity)
      group->places = st_memory_grow(group->places, &group->capacity,
                                     (uint64_t)i + 1, sizeof *group->places);
    uint32_t row = add_merged(t, track, parent, i);
    group->places[group->size++] = (struct st_track_place){.row = row};
  }
  struct st_track_place* place = &group->places[i];
  place->uuid = track->uuid;
  track->place = i + 1;
  if (use == ST_USE_BEGIN)
    place->depth++;
  else if (use == ST_USE_END && place->depth)
    place->depth--;
  return place->row;
}

static bool is_merged(const struct st_track* track) {
  return !track->is_counter && track->kind == ST_TRACK_PLAIN &&
         track->merge != ST_MERGE_NONE;
}

/* Returns the row of a track that isn't merged; adds it if it is new. */
static uint32_t single_row(struct st_tracks* t, struct st_track* track) {
  if (!track->row) {
    uint32_t parent = parent_row(t, track);
    bool is_thread = track->kind == ST_TRACK_THREAD && !track->is_separate;
    uint32_t row = is_thread ? st_tracks_thread_row(t, track->owner)
                             : add_single(t, track, parent);
    track->row = row + 1;
  }
  return track->row - 1;
}

/* Returns the parent's row, which is added if it is new; ST_NO_ROW if there is
 * no parent, or if the track or its parent stands for a thread or process. */
static uint32_t parent_row(struct st_tracks* t, const struct st_track* track) {
  struct st_track* parent =
      track->parent ? st_tracks_find(t, track->parent) : NULL;
  if (!parent)
    return ST_NO_ROW;
  uint32_t row = is_merged(parent)
                     ? merged_row(t, parent, ST_USE_INSTANT, parent->name)
                     : single_row(t, parent);
  bool both_plain =
      parent->kind == ST_TRACK_PLAIN && track->kind == ST_TRACK_PLAIN;
  return both_plain ? row : ST_NO_ROW;
}

uint32_t st_tracks_row(struct st_tracks* t, uint64_t uuid, enum st_use use,
                       st_string event_name) {
  struct st_track* track = st_tracks_find(t, uuid);
  if (is_merged(track))
    return merged_row(t, track, use, event_name);
  uint32_t row = single_row(t, track);
  if (!track->name && event_name && track->kind == ST_TRACK_PLAIN &&
      !track->is_counter) {
    track->name = event_name;
    st_table_set(&t->storage->tables[ST_TRACK_TABLE], row, ST_TRACK_name,
                 st_text(event_name));
  }
  return row;
}

st_string st_tracks_row_name(const struct st_tracks* t, uint32_t row) {
  const struct st_table* table = &t->storage->tables[ST_TRACK_TABLE];
  return (st_string)st_table_get(table, row, ST_TRACK_name).i;
}

void st_tracks_free(struct st_tracks* t) {
  for (uint32_t i = 0; i < t->groups.size; i++) {
    free(t->groups.data[i].places);
    st_map_free(&t->groups.data[i].by_cookie);
  }
  free(t->groups.data);
  free(t->tracks.data);
  st_map_free(&t->by_uuid);
  st_map_free(&t->by_merge_key);
  st_map_free(&t->by_thread);
  st_map_free(&t->by_dimensions);
  st_map_free(&t->with_first);
  st_arg_list_free(&t->arguments);
}
