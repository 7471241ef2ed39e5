/* Tests of patch lists: the FIFO of sizes that are not known yet. */
#include "core/patch_list.h"

#include "check.h"

static void test_patches_are_removed_in_their_order(void) {
  struct st_patch_list list = {0};
  CHECK(!st_patch_list_has_ready(&list));
  for (uint16_t i = 0; i < 3; i++)
    CHECK(st_patch_list_add(&list, 10u + i, i));
  for (uint16_t i = 0; i < 3; i++) {
    CHECK_EQ(list.front->chunk_id, 10 + i);
    CHECK_EQ(list.front->offset, i);
    st_patch_list_pop(&list);
  }
  CHECK(!list.front && !list.back);
  /* The list is usable after it was emptied. */
  CHECK(st_patch_list_add(&list, 1, 1));
  CHECK(list.front && list.front == list.back);
  st_patch_list_clear(&list);
  CHECK(!list.front && !list.back);
}

static void test_patch_is_ready_when_its_first_byte_is_set(void) {
  struct st_patch_list list = {0};
  struct st_patch* first = st_patch_list_add(&list, 1, 0);
  struct st_patch* second = st_patch_list_add(&list, 1, 4);
  CHECK(!st_patch_is_ready(first));
  second->size_field[0] = 0x80;
  CHECK(st_patch_is_ready(second));
  /* The patch at the front of the list is not ready. */
  CHECK(!st_patch_list_has_ready(&list));
  first->size_field[0] = 0x81;
  CHECK(st_patch_list_has_ready(&list));
  st_patch_list_clear(&list);
}

static void test_slots_do_not_move_while_the_list_grows(void) {
  enum { COUNT = 1000 };
  static uint8_t* slots[COUNT];
  struct st_patch_list list = {0};
  for (uint32_t i = 0; i < COUNT; i++)
    slots[i] = st_patch_list_add(&list, i, 0)->size_field;
  for (uint32_t i = 0; i < COUNT; i++)
    *slots[i] = (uint8_t)(i | 0x80);
  for (uint32_t i = 0; i < COUNT; i++) {
    CHECK(list.front->size_field == slots[i]);
    CHECK_EQ(list.front->size_field[0], (uint8_t)(i | 0x80));
    st_patch_list_pop(&list);
  }
}

int main(void) {
  RUN(test_patches_are_removed_in_their_order);
  RUN(test_patch_is_ready_when_its_first_byte_is_set);
  RUN(test_slots_do_not_move_while_the_list_grows);
  return 0;
}
