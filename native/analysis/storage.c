#include "storage.h"

#define COLUMN_SPEC(t, c, type) {#c, ST_##type},
#define COLUMN_SPECS(t, name, columns) \
  static const struct st_column_spec k##t##Columns[] = {columns};
ST_TABLES(COLUMN_SPECS, COLUMN_SPEC)

#define TABLE_SPEC(t, name, columns) {#name, ST_##t##_COLUMNS, k##t##Columns},
static const struct st_table_spec kTables[] = {
    ST_TABLES(TABLE_SPEC, ST_NO_COLUMN)};

void st_storage_init(struct st_storage* s) {
  st_string_pool_init(&s->strings);
  for (uint32_t i = 0; i < ST_TABLE_COUNT; i++)
    st_table_init(&s->tables[i], &kTables[i]);
}

void st_storage_free(struct st_storage* s) {
  for (uint32_t i = 0; i < ST_TABLE_COUNT; i++) {
    if (s->tables[i].spec)
      st_table_free(&s->tables[i]);
  }
  st_string_pool_free(&s->strings);
}
