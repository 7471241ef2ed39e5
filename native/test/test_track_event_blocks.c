/* Tests of events written from blocks, and of calls with their function's
 * names.  The written bytes must be those that st_sequence_write() writes. */
#include "core/track_event.h"

#include "check.h"
#include "chunk_reader.h"
#include "core/fields.h"
#include "core/setters.h"

enum { PAGE = 4096, PAGES = 4, MOST = 4096 };

struct bytes {
  uint8_t data[MOST];
  size_t size;
};

static void append(void* context, const uint8_t* p, size_t size) {
  struct bytes* all = context;
  CHECK(all->size + size <= MOST);
  memcpy(all->data + all->size, p, size);
  all->size += size;
}

struct call {
  uint64_t begin, end;
  uint32_t category, name, location;
};

static const struct call kCalls[] = {
    {1000, 1001, 1, 2, 3},
    {1002, 99999999, 127, 128, 16383},
    {99999999, 1u << 30, 4096, 4096, 2097151},
};

static bool write_blocks(struct st_sequence* s, const struct call* c) {
  struct st_event_block begin;
  return st_make_call_block(&begin, c->category, c->name, c->location) &&
         st_sequence_write_block(s, c->begin, &begin, 0) &&
         st_sequence_write_block(s, c->end, &st_end_block, 0);
}

static bool write_small_calls(struct st_sequence* s, const struct call* c) {
  struct st_small_call call = {.category_iid = c->category,
                               .name_iid = c->name,
                               .location_iid = c->location};
  return st_sequence_write_call(s, c->begin, &call) &&
         st_sequence_write_block(s, c->end, &st_end_block, 0);
}

static bool write_events(struct st_sequence* s, const struct call* c) {
  uint8_t field[8];
  uint8_t* end = st_put_u64_field(
      field, ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID, c->location);
  struct st_event event = {.type = ST_SLICE_BEGIN,
                           .timestamp = c->begin,
                           .category_iid = c->category,
                           .name_iid = c->name,
                           .fields = field,
                           .fields_size = (size_t)(end - field)};
  return st_sequence_write(s, &event) &&
         st_sequence_write_small(s, ST_SLICE_END, c->end, 0, 0, 0);
}

/* Collects the packets of all calls.  Leaves out packets that announce the
 * state, because they contain the time. */
static struct bytes record(bool (*write)(struct st_sequence*,
                                         const struct call*)) {
  static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[PAGES * PAGE];
  memset(memory, 0, sizeof memory);
  struct st_shm shm;
  struct chunk_reader reader;
  struct st_arbiter arbiter;
  struct st_sequence s;
  static const uint8_t kDescriptor[] = {0x08, 0x2A};
  static const struct st_track kThread = {42, kDescriptor, 2, NULL};
  CHECK(st_shm_init(&shm, memory, sizeof memory, PAGE));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
  CHECK(st_sequence_init(&s, &arbiter, 7, ST_DROP, &kThread));
  CHECK(st_sequence_prepare(&s, 1000, ST_EVENT_ROOM));
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; i++)
    CHECK(write(&s, &kCalls[i]));
  CHECK_EQ(s.events_written, 2 * sizeof kCalls / sizeof *kCalls);
  st_sequence_destroy(&s);
  struct bytes all = {.size = 0};
  struct packet_in_progress packet = {0};
  const struct chunk_copy* c = &reader.chunks[0];
  read_fragments(c, c->packets & ST_PACKETS_COUNT_MASK, &packet, append, &all);
  free(packet.data);
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
  return all;
}

static void check_same(const struct bytes* some, const struct bytes* events) {
  CHECK(some->size > 60);
  CHECK_EQ(some->size, events->size);
  CHECK(memcmp(some->data, events->data, some->size) == 0);
}

static void block_and_small_call_equal_the_general_event(void) {
  struct bytes blocks = record(write_blocks);
  struct bytes calls = record(write_small_calls);
  struct bytes events = record(write_events);
  check_same(&blocks, &events);
  check_same(&calls, &events);
}

static void block_size_is_limited(void) {
  struct st_event_block block;
  CHECK(st_make_call_block(&block, UINT32_MAX, UINT32_MAX, 1));
  CHECK(!st_make_call_block(&block, UINT32_MAX, UINT32_MAX, UINT32_MAX));
}

static void block_needs_an_announced_state_and_increasing_time(void) {
  struct st_sequence s;
  memset(&s, 0, sizeof s);
  CHECK(!st_sequence_write_block(&s, 5, &st_end_block, 0));
  s.state_valid = true;
  s.last_timestamp = 6;
  CHECK(!st_sequence_write_block(&s, 5, &st_end_block, 0));
}

static const struct st_function kFunction = {"Oven.bake", "/srv/oven.py", 9, 12,
                                             300};

enum { THREAD_TIME = 1 << 20 };

static bool write_timed_blocks(struct st_sequence* s, const struct call* c) {
  struct st_event_block begin;
  return st_make_call_block(&begin, c->category, c->name, 1) &&
         st_sequence_write_block(s, c->begin, &begin, THREAD_TIME) &&
         st_sequence_write_block(s, c->end, &st_end_block, UINT64_MAX);
}

static bool write_timed_events(struct st_sequence* s, const struct call* c) {
  uint8_t begin[16], end[16];
  uint8_t* b = st_put_thread_time(
      st_put_u64_field(begin, ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID, 1),
      THREAD_TIME);
  uint8_t* e = st_put_thread_time(end, UINT64_MAX);
  struct st_event event = {.type = ST_SLICE_BEGIN,
                           .timestamp = c->begin,
                           .category_iid = c->category,
                           .name_iid = c->name,
                           .fields = begin,
                           .fields_size = (size_t)(b - begin)};
  bool ok = st_sequence_write(s, &event);
  event = (struct st_event){.type = ST_SLICE_END,
                            .timestamp = c->end,
                            .fields = end,
                            .fields_size = (size_t)(e - end)};
  return ok && st_sequence_write(s, &event);
}

static void block_with_the_thread_time_equals_the_general_event(void) {
  struct bytes blocks = record(write_timed_blocks);
  struct bytes events = record(write_timed_events);
  check_same(&blocks, &events);
}

static bool write_named(struct st_sequence* s, const struct call* c) {
  struct st_event_block block;
  return st_sequence_write_named_call(s, c->begin, c->category, &kFunction,
                                      &block) &&
         st_sequence_write_block(s, c->end, &block, 0);
}

static bool write_named_events(struct st_sequence* s, const struct call* c) {
  uint32_t id = (uint32_t)(c - kCalls) + 1;
  uint8_t field[8], name[32], location[64], interned[96];
  uint8_t* end =
      st_put_u64_field(field, ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID, id);
  uint8_t* n = st_event_name_put_iid(name, id);
  n = st_event_name_put_name(n, "Oven.bake", 9);
  uint8_t* l = st_source_location_put_iid(location, id);
  l = st_source_location_put_file_name(l, "/srv/oven.py", 12);
  l = st_source_location_put_function_name(l, "Oven.bake", 9);
  l = st_source_location_put_line_number(l, 300);
  uint8_t* i =
      st_interned_data_put_event_names(interned, name, (size_t)(n - name));
  i = st_interned_data_put_source_locations(i, location,
                                            (size_t)(l - location));
  struct st_event event = {.type = ST_SLICE_BEGIN,
                           .timestamp = c->begin,
                           .category_iid = c->category,
                           .name_iid = id,
                           .fields = field,
                           .fields_size = (size_t)(end - field),
                           .interned = interned,
                           .interned_size = (size_t)(i - interned)};
  bool ok = st_sequence_write(s, &event);
  event.timestamp = c->end;
  event.interned_size = 0;
  return ok && st_sequence_write(s, &event);
}

static void named_call_equals_the_general_event(void) {
  struct bytes named = record(write_named);
  struct bytes events = record(write_named_events);
  CHECK(named.size > 200);
  CHECK_EQ(named.size, events.size);
  CHECK(memcmp(named.data, events.data, named.size) == 0);
}

static bool refuse(struct st_sequence* s, const struct call* c) {
  struct st_event_block block;
  struct st_function f = kFunction;
  static char text[ST_INTERN_MAX_LENGTH + 1];
  size_t room = st_trace_writer_room(&s->writer);
  uint64_t last = s->last_timestamp;
  CHECK(!st_sequence_write_named_call(s, last - 1, 1, &f, &block));
  f.name = text, f.name_size = sizeof text;
  CHECK(!st_sequence_write_named_call(s, c->begin, 1, &f, &block));
  f = kFunction;
  f.file = text, f.file_size = sizeof text;
  CHECK(!st_sequence_write_named_call(s, c->begin, 1, &f, &block));
  while (st_intern_take_id(&s->interned, ST_INTERN_EVENT_NAME))
    continue;
  CHECK(!st_sequence_write_named_call(s, c->begin, 1, &kFunction, &block));
  CHECK_EQ(st_trace_writer_room(&s->writer), room);
  CHECK_EQ(s->last_timestamp, last);
  return write_events(s, c);
}

static void named_call_is_refused_without_state_room_or_ids(void) {
  record(refuse);
}

static bool fill(struct st_sequence* s, const struct call* c) {
  struct st_event_block block;
  while (st_sequence_write_named_call(s, c->end, 1, &kFunction, &block))
    continue;
  /* The refused call has not changed the chunk. */
  CHECK(st_sequence_is_current(s));
  s->events_written = 2 * (uint64_t)(c - kCalls + 1);
  return true;
}

static void named_call_stays_in_its_chunk(void) {
  CHECK(record(fill).size > PAGE / 2);
}

int main(void) {
  RUN(named_call_equals_the_general_event);
  RUN(named_call_is_refused_without_state_room_or_ids);
  RUN(named_call_stays_in_its_chunk);
  RUN(block_and_small_call_equal_the_general_event);
  RUN(block_size_is_limited);
  RUN(block_with_the_thread_time_equals_the_general_event);
  RUN(block_needs_an_announced_state_and_increasing_time);
  return 0;
}
