#include "probes/print_filter.h"

#include <string.h>

struct text {
  const uint8_t* at;
  size_t size;
};

/* Removes a prefix.  Returns false if the text has another one. */
static bool skip(struct text* t, const void* prefix, size_t size) {
  if (size > t->size || (size && memcmp(t->at, prefix, size) != 0))
    return false;
  t->at += size;
  t->size -= size;
  return true;
}

static void skip_digits(struct text* t) {
  while (t->size && *t->at >= '0' && *t->at <= '9')
    skip(t, t->at, 1);
}

static bool matches(const struct st_print_rule* rule, struct text text) {
  if (rule->type) {
    if (!skip(&text, rule->type, rule->type_size) || !skip(&text, "|", 1))
      return false;
    skip_digits(&text);
    if (!skip(&text, "|", 1))
      return false;
  }
  return skip(&text, rule->prefix, rule->prefix_size);
}

bool st_print_filter_allows(const struct st_print_filter* filter,
                            const uint8_t* text, size_t size) {
  for (size_t i = 0; i < filter->count; i++) {
    if (matches(&filter->rules[i], (struct text){text, size}))
      return filter->rules[i].allow;
  }
  return true;
}
