/* Values of JSON as arguments. */
#include "importer.h"

static void add_leaf(struct st_arg_path* p, struct st_json value) {
  switch (value.kind) {
    case ST_JSON_TEXT:
      st_path_add_text(p, st_json_string(p->strings, value));
      break;
    case ST_JSON_REAL:
      st_path_add_real(p, value.f);
      break;
    case ST_JSON_BOOL:
      st_path_add_int(p, ST_ARG_BOOL, value.i);
      break;
    default:
      st_path_add_int(p, ST_ARG_INT, value.i);
  }
}

static void add_members(struct st_arg_path* p, struct st_json container) {
  struct st_json_members in = st_json_members(container);
  struct st_json name, value;
  struct st_path_mark mark = st_path_mark(p);
  uint32_t index = 0;
  if (p->depth == ST_MAX_DEPTH) {
    p->m->counts.undecodable_arguments++;
    return;
  }
  p->depth++;
  while (st_json_next(&in, &name, &value)) {
    if (value.kind == ST_JSON_NULL)
      continue;
    if (in.has_keys)
      st_path_append(p, name.data, name.size);
    else
      st_path_append_index(p, index++);
    st_add_json(p, value);
    st_path_return(p, mark);
  }
  p->depth--;
}

void st_add_json(struct st_arg_path* p, struct st_json value) {
  if (value.kind == ST_JSON_OBJECT || value.kind == ST_JSON_ARRAY)
    add_members(p, value);
  else if (value.kind != ST_JSON_NONE && value.kind != ST_JSON_NULL)
    add_leaf(p, value);
}
