#include "patch_list.h"

#include <stdlib.h>

struct st_patch* st_patch_list_add(struct st_patch_list* list,
                                   uint32_t chunk_id, uint16_t offset) {
  struct st_patch* patch = calloc(1, sizeof *patch);
  if (!patch)
    return NULL;
  patch->chunk_id = chunk_id;
  patch->offset = offset;
  if (list->back)
    list->back->next = patch;
  else
    list->front = patch;
  list->back = patch;
  return patch;
}

void st_patch_list_pop(struct st_patch_list* list) {
  struct st_patch* patch = list->front;
  list->front = patch->next;
  if (!list->front)
    list->back = NULL;
  free(patch);
}

void st_patch_list_clear(struct st_patch_list* list) {
  while (list->front)
    st_patch_list_pop(list);
}
