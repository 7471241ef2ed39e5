#include "arrow.h"

#include <errno.h>
#include <stdlib.h>

/* A schema and its children are one allocation; so are an array and its
 * children.  Each allocation has room for 32 children. */
_Static_assert(ST_SLICE_COLUMNS <= 32 && ST_PROCESS_COLUMNS <= 32, "columns");

struct schema_block {
  struct ArrowSchema* pointers[32];
  struct ArrowSchema children[32];
  struct ArrowSchema dictionary;
};

struct array_block {
  struct st_importer* importer;
  struct ArrowArray* pointers[32];
  struct ArrowArray children[32];
  struct ArrowArray dictionaries[32];
  const void* buffers[32][2];
  const void* pool_buffers[3];
  const void* own_buffers[1];
};

static const char* const kFormats[] = {"i", "l", "g", "i"};

static void release_nothing_schema(struct ArrowSchema* s) {
  s->release = NULL;
}

static void release_schema(struct ArrowSchema* s) {
  free(s->private_data);
  s->release = NULL;
}

bool st_arrow_schema(const struct st_table* t, struct ArrowSchema* out) {
  struct schema_block* block = calloc(1, sizeof *block);
  if (!block)
    return false;
  block->dictionary = (struct ArrowSchema){
      .format = "U", .name = "", .release = release_nothing_schema};
  for (uint32_t i = 0; i < t->spec->column_count; i++) {
    const struct st_column_spec* column = &t->spec->columns[i];
    block->pointers[i] = &block->children[i];
    block->children[i] = (struct ArrowSchema){
        .format = kFormats[column->type],
        .name = column->name,
        .flags = ST_ARROW_NULLABLE,
        .dictionary = column->type == ST_TEXT ? &block->dictionary : NULL,
        .release = release_nothing_schema};
  }
  *out = (struct ArrowSchema){.format = "+s",
                              .name = "",
                              .n_children = t->spec->column_count,
                              .children = block->pointers,
                              .release = release_schema,
                              .private_data = block};
  return true;
}

/* Children live in the block of their parent: they are released with it. */
static void release_child(struct ArrowArray* a) {
  a->release = NULL;
}

static void release_array(struct ArrowArray* a) {
  struct array_block* block = a->private_data;
  st_importer_free(block->importer);
  free(block);
  a->release = NULL;
}

static void fill_column(struct array_block* block, const struct st_table* t,
                        const struct st_string_pool* pool, uint32_t i) {
  const struct st_column* column = &t->columns[i];
  block->pointers[i] = &block->children[i];
  block->buffers[i][0] = column->nulls ? column->validity : NULL;
  block->buffers[i][1] = column->data;
  block->children[i] = (struct ArrowArray){.length = t->rows,
                                           .null_count = column->nulls,
                                           .n_buffers = 2,
                                           .buffers = block->buffers[i],
                                           .release = release_child};
  if (t->spec->columns[i].type != ST_TEXT)
    return;
  block->dictionaries[i] = (struct ArrowArray){.length = st_string_count(pool),
                                               .n_buffers = 3,
                                               .buffers = block->pool_buffers,
                                               .release = release_child};
  block->children[i].dictionary = &block->dictionaries[i];
}

bool st_arrow_array(struct st_importer* m, const struct st_table* t,
                    struct ArrowArray* out) {
  struct array_block* block = calloc(1, sizeof *block);
  if (!block)
    return false;
  const struct st_string_pool* pool = &m->storage.strings;
  block->importer = m;
  block->pool_buffers[1] = pool->offsets.data;
  block->pool_buffers[2] = pool->chars;
  for (uint32_t i = 0; i < t->spec->column_count; i++)
    fill_column(block, t, pool, i);
  st_importer_keep(m);
  *out = (struct ArrowArray){.length = t->rows,
                             .n_buffers = 1,
                             .n_children = t->spec->column_count,
                             .buffers = block->own_buffers,
                             .children = block->pointers,
                             .release = release_array,
                             .private_data = block};
  return true;
}

struct stream {
  struct st_importer* importer;
  const struct st_table* table;
  bool done;
};

static int get_schema(struct ArrowArrayStream* s, struct ArrowSchema* out) {
  const struct stream* stream = s->private_data;
  return st_arrow_schema(stream->table, out) ? 0 : ENOMEM;
}

static int get_next(struct ArrowArrayStream* s, struct ArrowArray* out) {
  struct stream* stream = s->private_data;
  if (stream->done) {
    *out = (struct ArrowArray){0};
    return 0;
  }
  stream->done = true;
  return st_arrow_array(stream->importer, stream->table, out) ? 0 : ENOMEM;
}

static const char* get_last_error(struct ArrowArrayStream* s) {
  (void)s;
  return "out of memory";
}

static void release_stream(struct ArrowArrayStream* s) {
  struct stream* stream = s->private_data;
  st_importer_free(stream->importer);
  free(stream);
  s->release = NULL;
}

bool st_arrow_stream(struct st_importer* m, const struct st_table* t,
                     struct ArrowArrayStream* out) {
  struct stream* stream = calloc(1, sizeof *stream);
  if (!stream)
    return false;
  *stream = (struct stream){m, t, false};
  st_importer_keep(m);
  *out = (struct ArrowArrayStream){get_schema, get_next, get_last_error,
                                   release_stream, stream};
  return true;
}
