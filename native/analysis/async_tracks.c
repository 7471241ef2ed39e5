#include "async_tracks.h"

static st_string first_name(struct st_async_tracks* a, uint32_t machine,
                            const struct st_async_slice* slice) {
  uint64_t key =
      slice->is_local ? st_mix(slice->id ^ slice->upid) + 1 : slice->id;
  uint32_t* known = st_map_at(&a->first_names, st_owned_key(key, machine));
  if (!*known)
    *known = slice->name + 1;
  return *known - 1;
}

static void add_source(struct st_storage* s, struct st_arg_list* source,
                       const struct st_async_slice* slice) {
  st_arg_add_text(source, st_intern(s, "source"), st_intern(s, "chrome"));
  st_arg_add_int(source, st_intern(s, "trace_id_is_process_scoped"),
                 ST_ARG_BOOL, slice->is_local);
  st_arg_add_int(source, st_intern(s, "upid"), ST_ARG_UINT, slice->upid);
  st_arg_add_text(source, st_intern(s, "source_scope"), slice->scope);
}

uint32_t st_async_track_row(struct st_async_tracks* a, struct st_tracks* t,
                            const struct st_async_slice* slice,
                            enum st_use use) {
  struct st_arg_list source = {0};
  struct st_dimension scope = {"scope", .text = slice->scope, .is_text = true};
  struct st_dimension name = {"name", .text = first_name(a, t->machine, slice),
                              .is_text = true};
  struct st_fixed_track f = {.type = "legacy_async_global_slice",
                             .name = slice->name,
                             .source = &source,
                             .dimensions = {scope, name}};
  if (slice->is_local) {
    f.type = "legacy_async_process_slice";
    f.dimensions[0] = (struct st_dimension){"upid", .number = slice->upid};
    f.dimensions[1] = scope;
    f.dimensions[2] = name;
  }
  add_source(t->storage, &source, slice);
  uint32_t row = st_tracks_async_row(t, &f, slice->id, use);
  st_arg_list_free(&source);
  return row;
}
