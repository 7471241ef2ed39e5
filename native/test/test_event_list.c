#include "analysis/event_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 3 * ST_BLOCK_EVENTS + 7, LARGE = (1 << 16) + 5 };

static uint8_t bytes[LARGE];

/* The size of the data of event i: none, short, or as long as data that is kept
 * apart, and a byte less. */
static uint32_t size_of(uint32_t i) {
  return i == 300 ? LARGE : i == 301 ? (1 << 16) - 1 : i % 40;
}

static void fill(struct st_event_list* l) {
  *l = (struct st_event_list){.words = 2, .has_data = true};
  for (uint32_t i = 0; i < LARGE; i++)
    bytes[i] = (uint8_t)(i * 7);
  for (uint32_t i = 0; i < COUNT; i++) {
    struct st_event e = {.ts = INT64_MIN + i,
                         .data = bytes + i % 5,
                         .tail = (const uint8_t*)"tail",
                         .size = size_of(i),
                         .generation = i,
                         .field = UINT32_MAX - i};
    if (e.size == LARGE)
      e.data = bytes;
    st_event_list_add(l, &e, i % 3 ? 0 : 4);
  }
}

static void events_keep_data_words_and_tail(void) {
  struct st_event_list l;
  fill(&l);
  CHECK_EQ(l.size, COUNT);
  for (uint32_t i = COUNT; i-- > 0;) {
    struct st_event e = st_event_list_get(&l, i);
    CHECK_EQ(e.ts, INT64_MIN + i);
    CHECK_EQ(st_event_list_ts(&l, i), INT64_MIN + i);
    CHECK_EQ(e.size, size_of(i));
    CHECK_EQ(e.generation, i);
    CHECK_EQ(e.field, UINT32_MAX - i);
    const uint8_t* data = e.size == LARGE ? bytes : bytes + i % 5;
    CHECK(memcmp(e.data, data, e.size) == 0);
    CHECK_EQ(e.tail != NULL, i % 3 == 0);
    CHECK(!e.tail || memcmp(e.tail, "tail", 4) == 0);
  }
  st_event_list_free(&l);
}

/* A compact event has no data; its size is another number. */
static void events_without_data_keep_their_size(void) {
  struct st_event_list l = {.words = 3};
  struct st_event e = {.ts = 1, .size = UINT32_MAX, .pid = 2, .priority = -3};
  st_event_list_add(&l, &e, 0);
  e.size = 0;
  st_event_list_add(&l, &e, 0);
  e = st_event_list_get(&l, 0);
  CHECK(e.size == UINT32_MAX && e.pid == 2 && e.priority == -3 && !e.data);
  CHECK_EQ(st_event_list_get(&l, 1).size, 0);
  st_event_list_free(&l);
}

/* The events of the first two blocks are done in turns, as if two writers were
 * recorded one after the other. */
static void a_block_is_freed_with_its_last_event(void) {
  struct st_event_list l;
  fill(&l);
  for (uint32_t i = 0; i < 2 * ST_BLOCK_EVENTS; i++) {
    bool is_last = i >= 2 * ST_BLOCK_EVENTS - 2;
    uint32_t at = i % 2 * ST_BLOCK_EVENTS + i / 2;
    CHECK_EQ(st_event_list_done(&l, at), is_last);
    CHECK_EQ(l.blocks.data[i % 2] == NULL, is_last);
  }
  CHECK_EQ(st_event_list_get(&l, COUNT - 1).generation, COUNT - 1);
  st_event_list_free(&l);
}

int main(void) {
  RUN(events_keep_data_words_and_tail);
  RUN(events_without_data_keep_their_size);
  RUN(a_block_is_freed_with_its_last_event);
  return 0;
}
