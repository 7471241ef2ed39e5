#include "bind/track_event/past_memo.h"

#include <stdlib.h>

static struct past_memos* new_memos(void) {
  struct past_memos* memos =
      aligned_alloc(_Alignof(struct past_memos), sizeof *memos);
  if (memos)
    memset(memos, 0, sizeof *memos);
  return memos;
}

static void set_values(struct past_memo* m, PyObject* const* values) {
  for (int i = 0; i < ST_PAST_VALUES; i++)
    Py_XSETREF(m->values[i], Py_XNewRef(values[i]));
}

void past_memo_keep(struct past_memos** memos, const struct st_sequence* s,
                    const EventTemplateObject* template,
                    const struct st_past_slice* slice, const uint8_t* begin,
                    const uint8_t* end) {
  const uint8_t* limit = s->writer.cur;
  if (!*memos && !(*memos = new_memos()))
    return;
  if (limit - begin > PAST_MEMO_BYTES)
    return;
  struct past_memo* m = past_memo_slot(*memos, template->number, slice);
  set_values(m, slice->values);
  m->number = template->number;
  m->epoch = s->epoch;
  m->size = (uint8_t)(limit - begin);
  m->end_time = (uint8_t)(end - begin + 2);
  memcpy(m->bytes, begin, m->size);
}

void past_memos_free(struct past_memos* memos) {
  static PyObject* const kNone[ST_PAST_VALUES] = {NULL};
  for (int i = 0; memos && i < PAST_MEMOS; i++)
    set_values(&memos->memos[i], kNone);
  free(memos);
}
