#include "deobfuscation.h"

#include <stdlib.h>
#include <string.h>

#include "importer.h"
#include "messages.h"

enum {
  /* DeobfuscationMapping */
  PACKAGE = 1,
  CLASSES = 3,
  /* ObfuscatedClass, ObfuscatedMember */
  OBFUSCATED = 1,
  ORIGINAL = 2,
  FIELDS = 3,
  METHODS = 4,
  /* PackagesList, PackageInfo */
  PACKAGES = 1,
  PACKAGE_NAME = 1,
  PACKAGE_UID = 2,
  PACKAGE_DEBUGGABLE = 3,
  PACKAGE_PROFILEABLE = 4,
  PACKAGE_VERSION = 5,
};

/* What a name is the name of. */
enum what { A_CLASS, A_FIELD, A_METHOD };

static struct st_cell cell(struct st_importer* m, uint32_t table, uint32_t row,
                           uint32_t column) {
  const struct st_table* t = &m->storage.tables[table];
  return row < t->rows ? st_table_get(t, row, column) : ST_NULL;
}

static st_string text_at(struct st_importer* m, uint32_t table, uint32_t row,
                         uint32_t column) {
  struct st_cell c = cell(m, table, row, column);
  return c.valid ? (st_string)c.i : 0;
}

/* Copies the text of a string, which stays valid when strings are added. */
static struct st_field copied(struct st_importer* m, st_string string) {
  struct st_field f = {0};
  const char* text = st_string_text(&m->storage.strings, string, &f.size);
  f.data = st_bytes_copy(&m->arena, text, f.size);
  return f;
}

static void append(struct st_importer* m, const void* data, size_t size) {
  struct st_deobfuscation* d = &m->deobfuscation;
  ST_RESERVE(&d->text, size);
  if (size)
    memcpy(d->text.data + d->text.size, data, size);
  d->text.size += (uint32_t)size;
}

static st_string made(struct st_importer* m) {
  struct st_deobfuscation* d = &m->deobfuscation;
  st_string s = st_string_add(&m->storage.strings, d->text.data, d->text.size);
  d->text.size = 0;
  return s;
}

/* Returns `class.member`. */
static st_string qualified(struct st_importer* m, struct st_field class_name,
                           struct st_field member) {
  append(m, class_name.data, class_name.size);
  append(m, ".", 1);
  append(m, member.data, member.size);
  return made(m);
}

static void remember(struct st_importer* m, enum what what, st_string package,
                     st_string obfuscated, st_string original) {
  struct st_deobfuscation* d = &m->deobfuscation;
  uint32_t number =
      st_key_number(&d->keys, (struct st_key){what, package, obfuscated});
  if (number == d->names.size)
    ST_PUSH(&d->names);
  d->names.data[number] = (struct st_original_name){original, ++d->order};
}

/* Returns the original name; its `order` is 0 if there is none. */
static struct st_original_name look_up(struct st_importer* m, enum what what,
                                       st_string package, st_string name) {
  struct st_deobfuscation* d = &m->deobfuscation;
  uint32_t number =
      st_key_number(&d->keys, (struct st_key){what, package, name});
  if (number == d->names.size)
    *ST_PUSH(&d->names) = (struct st_original_name){0};
  return d->names.data[number];
}

static void read_member(struct st_importer* m, const struct st_field* class_,
                        struct st_field message, st_string package) {
  struct st_field f[ORIGINAL + 1];
  st_message_read(message, f, ORIGINAL + 1);
  st_string obfuscated = qualified(m, class_[OBFUSCATED], f[OBFUSCATED]);
  bool is_full =
      f[ORIGINAL].size && memchr(f[ORIGINAL].data, '.', f[ORIGINAL].size);
  st_string original = is_full ? st_field_text(&m->storage, f[ORIGINAL])
                               : qualified(m, class_[ORIGINAL], f[ORIGINAL]);
  if (message.number == FIELDS) {
    remember(m, A_FIELD, 0, obfuscated, original);
    return;
  }
  if (!package)
    return;
  remember(m, A_METHOD, package, obfuscated, original);
  remember(m, A_METHOD, st_intern(&m->storage, "memfd"), obfuscated, original);
}

static void read_class(struct st_importer* m, struct st_field message,
                       st_string package) {
  struct st_field f[ORIGINAL + 1], member;
  struct st_decoder d;
  st_message_read(message, f, ORIGINAL + 1);
  st_string obfuscated = st_field_text(&m->storage, f[OBFUSCATED]);
  st_string original = st_field_text(&m->storage, f[ORIGINAL]);
  remember(m, A_CLASS, 0, obfuscated, original);
  if (package)
    remember(m, A_CLASS, package, obfuscated, original);
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &member)) {
    if (member.data && (member.number == FIELDS || member.number == METHODS))
      read_member(m, f, member, package);
  }
}

static void read_mapping(struct st_importer* m, struct st_field mapping) {
  struct st_decoder d;
  struct st_field f = st_message_find(mapping, PACKAGE);
  st_string package = f.size ? st_field_text(&m->storage, f) : 0;
  st_decoder_init(&d, mapping.data, mapping.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == CLASSES && f.data)
      read_class(m, f, package);
  }
}

static st_string package_of(struct st_importer* m, st_string path) {
  struct st_field p = copied(m, path);
  return path ? st_package_of_path(&m->storage, (const char*)p.data, p.size)
              : 0;
}

/* Returns the package of a process; 0 if it is unknown. */
static st_string package_of_process(struct st_importer* m, uint32_t upid) {
  struct st_cell app =
      cell(m, ST_PROCESS_TABLE, upid, ST_PROCESS_android_appid);
  return app.valid ? st_map_get(&m->deobfuscation.packages, (uint64_t)app.i)
                   : 0;
}

/* Names a class of a heap graph: in `java.lang.Class<X[]>`, only X is looked
 * up. */
static void name_class(struct st_importer* m, struct st_class_owner owner) {
  static const char kClass[] = "java.lang.Class<";
  struct st_field full =
      copied(m, text_at(m, ST_HEAP_CLASS_TABLE, owner.row, ST_HEAP_CLASS_name));
  const uint8_t* name = full.data;
  size_t size = full.size, prefix = sizeof kClass - 1;
  if (size > prefix && name[size - 1] == '>' &&
      memcmp(name, kClass, prefix) == 0)
    name += prefix, size -= prefix + 1;
  while (size >= 2 && memcmp(name + size - 2, "[]", 2) == 0)
    size -= 2;
  st_string package = package_of(
      m, text_at(m, ST_HEAP_CLASS_TABLE, owner.row, ST_HEAP_CLASS_location));
  if (!package)
    package = package_of_process(m, owner.upid);
  struct st_original_name original = look_up(
      m, A_CLASS, package, st_string_add(&m->storage.strings, name, size));
  if (!original.order)
    return;
  struct st_field text = copied(m, original.name);
  append(m, full.data, (size_t)(name - full.data));
  append(m, text.data, text.size);
  append(m, name + size, (size_t)(full.data + full.size - name - size));
  st_table_set(&m->storage.tables[ST_HEAP_CLASS_TABLE], owner.row,
               ST_HEAP_CLASS_deobfuscated_name, st_text(made(m)));
}

static void name_fields(struct st_importer* m) {
  struct st_table* t = &m->storage.tables[ST_HEAP_REFERENCE_TABLE];
  for (uint32_t i = 0; i < t->rows; i++) {
    struct st_original_name original = look_up(
        m, A_FIELD, 0,
        text_at(m, ST_HEAP_REFERENCE_TABLE, i, ST_HEAP_REFERENCE_field_name));
    if (original.order)
      st_table_set(t, i, ST_HEAP_REFERENCE_deobfuscated_field_name,
                   st_text(original.name));
  }
}

static void name_frame(struct st_importer* m, uint32_t frame,
                       st_string package) {
  struct st_original_name original = look_up(
      m, A_METHOD, package, text_at(m, ST_FRAME_TABLE, frame, ST_FRAME_name));
  uint32_t* order = st_map_at(&m->deobfuscation.frame_orders, frame);
  if (!original.order || original.order <= *order)
    return;
  *order = original.order;
  st_table_set(&m->storage.tables[ST_FRAME_TABLE], frame,
               ST_FRAME_deobfuscated_name, st_text(original.name));
}

/* Returns the package of a frame's file; 0 if it is unknown, ST_NO_ROW if the
 * frame is not one of Java. */
static st_string package_of_frame(struct st_importer* m, uint32_t frame) {
  struct st_field name =
      copied(m, text_at(m, ST_FRAME_TABLE, frame, ST_FRAME_name));
  if (!name.size || !memchr(name.data, '.', name.size))
    return ST_NO_ROW;
  uint32_t mapping =
      (uint32_t)cell(m, ST_FRAME_TABLE, frame, ST_FRAME_mapping).i;
  st_string path = text_at(m, ST_MAPPING_TABLE, mapping, ST_MAPPING_name);
  st_string package = package_of(m, path);
  struct st_field p = copied(m, path);
  if (!package && p.size >= 7 && memcmp(p.data, "/memfd:", 7) == 0)
    package = st_intern(&m->storage, "memfd");
  return package;
}

/* Names the frames of a stack whose package is only known by the process. */
static void name_stack(struct st_importer* m, uint32_t upid,
                       struct st_cell callsite) {
  struct st_deobfuscation* d = &m->deobfuscation;
  st_string package = package_of_process(m, upid);
  while (package && callsite.valid) {
    uint32_t row = (uint32_t)callsite.i;
    uint32_t* seen =
        st_map_at(&d->seen_callsites, (uint64_t)row << 32 | package);
    if (*seen)
      return;
    *seen = 1;
    uint32_t frame =
        (uint32_t)cell(m, ST_CALLSITE_TABLE, row, ST_CALLSITE_frame_id).i;
    if (package_of_frame(m, frame) == 0)
      name_frame(m, frame, package);
    callsite = cell(m, ST_CALLSITE_TABLE, row, ST_CALLSITE_parent_id);
  }
}

static void name_frames(struct st_importer* m) {
  const struct st_table* t = m->storage.tables;
  for (uint32_t i = 0; i < t[ST_FRAME_TABLE].rows; i++) {
    st_string package = package_of_frame(m, i);
    if (package && package != ST_NO_ROW)
      name_frame(m, i, package);
  }
  for (uint32_t i = 0; i < t[ST_ALLOCATION_TABLE].rows; i++)
    name_stack(m,
               (uint32_t)cell(m, ST_ALLOCATION_TABLE, i, ST_ALLOCATION_upid).i,
               cell(m, ST_ALLOCATION_TABLE, i, ST_ALLOCATION_callsite_id));
  for (uint32_t i = 0; i < t[ST_PERF_SAMPLE_TABLE].rows; i++) {
    uint32_t utid =
        (uint32_t)cell(m, ST_PERF_SAMPLE_TABLE, i, ST_PERF_SAMPLE_utid).i;
    struct st_cell upid = cell(m, ST_THREAD_TABLE, utid, ST_THREAD_upid);
    if (upid.valid)
      name_stack(m, (uint32_t)upid.i,
                 cell(m, ST_PERF_SAMPLE_TABLE, i, ST_PERF_SAMPLE_callsite_id));
  }
}

void st_parse_deobfuscation(struct st_importer* m, const struct st_event* e) {
  *ST_PUSH(&m->deobfuscation.mappings) = (struct st_kept_mapping){
      st_bytes_copy(&m->arena, e->data, e->size), e->size};
}

void st_finish_deobfuscation(struct st_importer* m) {
  struct st_deobfuscation* d = &m->deobfuscation;
  if (!d->mappings.size)
    return;
  for (uint32_t i = 0; i < d->mappings.size; i++)
    read_mapping(m, (struct st_field){.data = d->mappings.data[i].data,
                                      .size = d->mappings.data[i].size});
  for (uint32_t i = 0; i < d->owners.size; i++)
    name_class(m, d->owners.data[i]);
  name_fields(m);
  name_frames(m);
}

void st_parse_packages(struct st_importer* m, const struct st_event* e) {
  struct st_table* t = &m->storage.tables[ST_PACKAGE_TABLE];
  struct st_decoder d;
  struct st_field package, f[PACKAGE_VERSION + 1];
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &package)) {
    if (package.number != PACKAGES || !package.data)
      continue;
    st_message_read(package, f, PACKAGE_VERSION + 1);
    st_string name = st_field_text(&m->storage, f[PACKAGE_NAME]);
    struct st_cell cells[ST_PACKAGE_COLUMNS] = {
        [ST_PACKAGE_id] = st_int(t->rows),
        [ST_PACKAGE_package_name] = st_text(name),
        [ST_PACKAGE_uid] = st_int((int64_t)f[PACKAGE_UID].value),
        [ST_PACKAGE_debuggable] = st_int(f[PACKAGE_DEBUGGABLE].value != 0),
        [ST_PACKAGE_profileable_from_shell] =
            st_int(f[PACKAGE_PROFILEABLE].value != 0),
        [ST_PACKAGE_version_code] = st_int((int64_t)f[PACKAGE_VERSION].value),
    };
    st_table_add(t, cells);
    uint32_t* known =
        st_map_at(&m->deobfuscation.packages, f[PACKAGE_UID].value);
    if (!*known)
      *known = name;
  }
}

void st_deobfuscation_free(struct st_deobfuscation* d) {
  free(d->mappings.data);
  st_keys_free(&d->keys);
  free(d->names.data);
  free(d->text.data);
  st_map_free(&d->frame_orders);
  st_map_free(&d->seen_callsites);
  st_map_free(&d->packages);
  free(d->owners.data);
}
