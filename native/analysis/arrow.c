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
  void* values[32]; /* Allocated. */
  const void* buffers[32][2];
  const void* pool_buffers[3];
  const void* own_buffers[1];
};

static const char* const kFormats[] = {"i", "i", "l", "g", "i"};

/* The validity of segments whose values are all NULL. */
static const uint8_t kZeros[ST_SEGMENT_ROWS / 8];

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

static void free_array(struct array_block* block) {
  for (uint32_t i = 0; i < 32; i++)
    free(block->values[i]);
  free(block);
}

static void release_array(struct ArrowArray* a) {
  struct array_block* block = a->private_data;
  st_importer_free(block->importer);
  free_array(block);
  a->release = NULL;
}

/* Copies the values of a segment; `first` is the segment's first row. */
static void* copy_values(const struct st_table* t, uint32_t first,
                         uint32_t column) {
  enum st_type type = t->spec->columns[column].type;
  bool is_wide = type == ST_INT64 || type == ST_DOUBLE;
  uint32_t rows = st_table_segment_rows(t, first);
  const struct st_segment* s = st_table_segment(t, first, column);
  void* values = malloc(rows * (is_wide ? sizeof(int64_t) : sizeof(int32_t)));
  if (!values)
    return NULL;
  if (is_wide)
    st_segment_copy64(s, rows, values);
  else if (type != ST_ROW)
    st_segment_copy32(s, rows, values);
  for (uint32_t i = 0; i < rows && type == ST_ROW; i++)
    ((int32_t*)values)[i] = (int32_t)(first + i);
  for (uint32_t i = 0; i < rows && type == ST_DOUBLE; i++)
    ((int64_t*)values)[i] = st_real_code(((int64_t*)values)[i]);
  return values;
}

static bool is_all_null(const struct st_segment* s) {
  return s->nulls && !s->validity;
}

static bool fill_column(struct array_block* block, const struct st_table* t,
                        const struct st_string_pool* pool, uint32_t first,
                        uint32_t i) {
  const struct st_segment* segment = st_table_segment(t, first, i);
  block->pointers[i] = &block->children[i];
  block->values[i] = copy_values(t, first, i);
  block->buffers[i][0] = is_all_null(segment) ? kZeros : segment->validity;
  block->buffers[i][1] = block->values[i];
  block->children[i] =
      (struct ArrowArray){.length = st_table_segment_rows(t, first),
                          .null_count = segment->nulls,
                          .n_buffers = 2,
                          .buffers = block->buffers[i],
                          .release = release_child};
  if (t->spec->columns[i].type == ST_TEXT) {
    block->dictionaries[i] =
        (struct ArrowArray){.length = st_string_count(pool),
                            .n_buffers = 3,
                            .buffers = block->pool_buffers,
                            .release = release_child};
    block->children[i].dictionary = &block->dictionaries[i];
  }
  return block->values[i] != NULL;
}

/* Exports the segments that begin with this row. */
static bool export_segments(struct st_importer* m, const struct st_table* t,
                            uint32_t first, struct ArrowArray* out) {
  struct array_block* block = calloc(1, sizeof *block);
  if (!block)
    return false;
  const struct st_string_pool* pool = &m->storage.strings;
  block->importer = m;
  block->pool_buffers[1] = pool->offsets.data;
  block->pool_buffers[2] = pool->chars;
  bool done = true;
  for (uint32_t i = 0; i < t->spec->column_count; i++)
    done = fill_column(block, t, pool, first, i) && done;
  if (!done) {
    free_array(block);
    return false;
  }
  st_importer_keep(m);
  *out = (struct ArrowArray){.length = st_table_segment_rows(t, first),
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
  uint32_t row; /* The first row that hasn't been exported. */
};

static int get_schema(struct ArrowArrayStream* s, struct ArrowSchema* out) {
  const struct stream* stream = s->private_data;
  return st_arrow_schema(stream->table, out) ? 0 : ENOMEM;
}

static int get_next(struct ArrowArrayStream* s, struct ArrowArray* out) {
  struct stream* stream = s->private_data;
  uint32_t first = stream->row;
  *out = (struct ArrowArray){0};
  if (first >= stream->table->rows)
    return 0;
  stream->row += ST_SEGMENT_ROWS;
  return export_segments(stream->importer, stream->table, first, out) ? 0
                                                                      : ENOMEM;
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
  *stream = (struct stream){m, t, 0};
  st_importer_keep(m);
  *out = (struct ArrowArrayStream){get_schema, get_next, get_last_error,
                                   release_stream, stream};
  return true;
}
