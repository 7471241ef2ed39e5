#include "message_arena.h"

#include <stdlib.h>

bool st_arena_deepen(struct st_arena_message* parent) {
  parent->deeper = calloc(1, sizeof *parent->deeper);
  return parent->deeper != NULL;
}

void st_arena_free(struct st_arena_message* root) {
  struct st_arena_message* message = root->deeper;
  while (message) {
    struct st_arena_message* next = message->deeper;
    free(message);
    message = next;
  }
  root->deeper = NULL;
}
