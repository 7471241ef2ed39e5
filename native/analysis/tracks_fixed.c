/* Tracks without descriptors: those of kernel events, statistics and JSON. */
#include <string.h>

#include "tracks.h"

enum { DIMENSIONS = 3 };

/* Returns the id of the argument set with the dimensions, and with the place
 * unless it is NULL; ST_NO_ROW if the set is empty. */
static uint32_t dimension_set(struct st_tracks* t,
                              const struct st_fixed_track* f,
                              const uint32_t* place) {
  for (uint32_t i = 0; i < DIMENSIONS && f->dimensions[i].key; i++) {
    const struct st_dimension* d = &f->dimensions[i];
    st_string key = st_intern(t->storage, d->key);
    if (d->text || d->is_text)
      st_arg_add_text(&t->arguments, key, d->text);
    else
      st_arg_add_int(&t->arguments, key, ST_ARG_INT, d->number);
  }
  if (place)
    st_arg_add_int(&t->arguments, st_intern(t->storage, "track_compressor_idx"),
                   ST_ARG_INT, *place);
  uint32_t set = st_arg_sets_add(t->arg_sets, t->storage, &t->arguments);
  st_arg_list_clear(&t->arguments);
  return set;
}

static struct st_cell owner(const struct st_fixed_track* f, const char* key) {
  for (uint32_t i = 0; i < DIMENSIONS && f->dimensions[i].key; i++) {
    if (strcmp(f->dimensions[i].key, key) == 0)
      return st_int(f->dimensions[i].number);
  }
  return ST_NULL;
}

static uint32_t add_row(struct st_tracks* t, const struct st_fixed_track* f,
                        uint32_t set, struct st_cell group) {
  struct st_storage* s = t->storage;
  struct st_table* table = &s->tables[ST_TRACK_TABLE];
  struct st_cell cells[ST_TRACK_COLUMNS] = {
      [ST_TRACK_id] = st_int(table->rows),
      [ST_TRACK_type] = st_text(st_intern(s, f->type)),
      [ST_TRACK_name] = st_text(f->name),
      [ST_TRACK_dimension_arg_set_id] = st_row(set),
      [ST_TRACK_event_type] =
          st_text(st_intern(s, f->is_counter ? "counter" : "slice")),
      [ST_TRACK_track_group_id] = group,
      [ST_TRACK_machine_id] = st_machine_cell(t->machine),
      [ST_TRACK_utid] = owner(f, "utid"),
      [ST_TRACK_upid] = owner(f, "upid"),
  };
  if (f->source)
    cells[ST_TRACK_source_arg_set_id] =
        st_row(st_arg_sets_add(t->arg_sets, s, f->source));
  struct st_cell cpu = owner(f, "cpu");
  if (cpu.valid && (uint64_t)cpu.i < ST_MAX_CPUS)
    st_cpu_get(t->cpus, (uint32_t)cpu.i);
  if (f->unit)
    cells[ST_TRACK_counter_unit] = st_text(st_intern(s, f->unit));
  return st_table_add(table, cells);
}

uint32_t st_tracks_fixed_row(struct st_tracks* t,
                             const struct st_fixed_track* f) {
  uint32_t set = dimension_set(t, f, NULL);
  uint64_t key = (uint64_t)st_intern(t->storage, f->type) << 32 | set;
  uint32_t* row = st_map_at(&t->by_dimensions, st_owned_key(key, t->machine));
  if (!*row)
    *row = add_row(t, f, set, ST_NULL) + 1;
  return *row - 1;
}

static uint64_t group_key(struct st_tracks* t, const struct st_fixed_track* f) {
  uint64_t key = st_mix(
      st_owned_key((uint64_t)st_intern(t->storage, f->type) + 1, t->machine));
  for (uint32_t i = 0; i < DIMENSIONS && f->dimensions[i].key; i++) {
    const struct st_dimension* d = &f->dimensions[i];
    key =
        st_mix(key ^ (d->text ? (uint64_t)d->text << 32 : (uint64_t)d->number));
  }
  return key;
}

/* Returns the number of the track's group plus 1. */
static uint32_t group_of(struct st_tracks* t, const struct st_fixed_track* f) {
  uint32_t* group = st_map_at(&t->by_merge_key, group_key(t, f));
  if (!*group) {
    *ST_PUSH(&t->groups) = (struct st_track_group){0};
    *group = t->groups.size;
  }
  return *group;
}

static uint32_t add_place(struct st_tracks* t, const struct st_fixed_track* f,
                          uint32_t group) {
  struct st_track_group* g = &t->groups.data[group - 1];
  uint32_t place = g->size;
  if (place == g->capacity)
    g->places = st_memory_grow(g->places, &g->capacity, (uint64_t)place + 1,
                               sizeof *g->places);
  uint32_t row = add_row(t, f, dimension_set(t, f, &place), st_int(group - 1));
  g->places[g->size++] = (struct st_track_place){.row = row};
  return place;
}

/* Returns the place of the cookie; without one, the first free place, which is
 * `size` if all are in use. */
static uint32_t find_place(struct st_track_group* g, uint64_t cookie) {
  uint32_t known = st_map_get(&g->by_cookie, cookie);
  if (known && g->places[known - 1].uuid == cookie)
    return known - 1;
  while (g->free_from < g->size &&
         (g->places[g->free_from].depth || g->free_from + 1 == g->instants))
    g->free_from++;
  return g->free_from;
}

/* Returns the place of the cookie in a group; adds one if it is needed. */
static uint32_t place_of(struct st_tracks* t, const struct st_fixed_track* f,
                         uint32_t group, uint64_t cookie) {
  uint32_t i = find_place(&t->groups.data[group - 1], cookie);
  struct st_track_group* g = &t->groups.data[group - 1];
  if (i == g->size)
    add_place(t, f, group);
  *st_map_at(&g->by_cookie, cookie) = i + 1;
  g->places[i].uuid = cookie;
  return i;
}

static uint32_t use_place(struct st_track_group* g, uint32_t i,
                          uint32_t depth) {
  g->places[i].depth = depth;
  if (!depth && i < g->free_from)
    g->free_from = i;
  return g->places[i].row;
}

uint32_t st_tracks_async_row(struct st_tracks* t,
                             const struct st_fixed_track* f, uint64_t cookie,
                             enum st_use use) {
  uint32_t group = group_of(t, f), i = place_of(t, f, group, cookie);
  struct st_track_group* g = &t->groups.data[group - 1];
  uint32_t depth = g->places[i].depth;
  if (use == ST_USE_BEGIN)
    depth++;
  else if (use == ST_USE_END && depth)
    depth--;
  return use_place(g, i, depth);
}

uint32_t st_tracks_flat_row(struct st_tracks* t, const struct st_fixed_track* f,
                            uint64_t cookie, bool is_begin) {
  uint32_t group = group_of(t, f), i = place_of(t, f, group, cookie);
  return use_place(&t->groups.data[group - 1], i, is_begin);
}

uint32_t st_tracks_instant_row(struct st_tracks* t,
                               const struct st_fixed_track* f) {
  uint32_t number = group_of(t, f);
  if (!t->groups.data[number - 1].instants) {
    uint32_t place = add_place(t, f, number);
    t->groups.data[number - 1].instants = place + 1;
  }
  const struct st_track_group* g = &t->groups.data[number - 1];
  return g->places[g->instants - 1].row;
}
