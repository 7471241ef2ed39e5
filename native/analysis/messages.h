/* Messages: the fields of a small message, by number. */
#pragma once

#include "core/decoder.h"
#include "storage.h"

/* Stores the last field of each number below `count` at this number; `number`
 * is 0 where there is none. */
void st_message_read(struct st_field message, struct st_field* fields,
                     uint32_t count);
/* Returns the last field with this number; its `number` is 0 if there is none.
 */
struct st_field st_message_find(struct st_field message, uint32_t number);
/* Returns the text of a field; 0 if the field is absent. */
st_string st_field_text(struct st_storage* s, struct st_field f);

/* Iterates over the integers of a repeated field, packed or not. */
struct st_integers {
  struct st_decoder fields;
  uint32_t number;
  bool is_malformed;       /* A packed field doesn't end with an integer. */
  const uint8_t *at, *end; /* The rest of a packed field. */
};

void st_integers_init(struct st_integers* it, struct st_field message,
                      uint32_t number);
bool st_integers_next(struct st_integers* it, uint64_t* value);
