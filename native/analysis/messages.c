#include "messages.h"

#include <string.h>

void st_message_read(struct st_field message, struct st_field* fields,
                     uint32_t count) {
  struct st_decoder d;
  struct st_field f;
  memset(fields, 0, count * sizeof *fields);
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < count)
      fields[f.number] = f;
  }
}

struct st_field st_message_find(struct st_field message, uint32_t number) {
  struct st_decoder d;
  struct st_field f, found = {0};
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == number)
      found = f;
  }
  return found;
}

st_string st_field_text(struct st_storage* s, struct st_field f) {
  return f.data ? st_string_add(&s->strings, f.data, f.size) : 0;
}

void st_integers_init(struct st_integers* it, struct st_field message,
                      uint32_t number) {
  *it = (struct st_integers){.number = number};
  st_decoder_init(&it->fields, message.data, message.size);
}

/* Goes to the next field.  Returns false at the end of the message. */
static bool next_field(struct st_integers* it, struct st_field* f) {
  while (st_decoder_next(&it->fields, f)) {
    if (f->number == it->number)
      return true;
  }
  return false;
}

bool st_integers_next(struct st_integers* it, uint64_t* value) {
  struct st_field f;
  for (;;) {
    if (it->at && it->at < it->end) {
      it->at = st_get_varint(it->at, it->end, value);
      if (it->at)
        return true;
      it->is_malformed = true;
    }
    if (!next_field(it, &f))
      return false;
    *value = f.value;
    if (!f.data)
      return true;
    it->at = f.data;
    it->end = f.data + f.size;
  }
}
