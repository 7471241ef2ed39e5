#include "analysis/json_text.h"

#include <stdlib.h>

#include "check.h"
#include "random.h"

static struct st_json number(const char* text) {
  return st_json_number((struct st_json){
      .kind = ST_JSON_TEXT, .data = text, .size = strlen(text)});
}

static void reals_are_those_of_strtod(void) {
  static const char* const kTexts[] = {"0.1",
                                       "-0.0",
                                       "5.",
                                       ".5",
                                       "-.25",
                                       "1e3",
                                       "1.5e-7",
                                       "123456789012345.6",
                                       "12345678901234567.8",
                                       "0.00000000001",
                                       "99999999999999999999"};
  for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++) {
    double expected = strtod(kTexts[i], NULL), found = number(kTexts[i]).f;
    CHECK_EQ(number(kTexts[i]).kind, ST_JSON_REAL);
    CHECK_EQ(memcmp(&found, &expected, sizeof found), 0);
  }
  uint64_t state = 1;
  for (int i = 0; i < 200000; i++) {
    char text[40];
    uint64_t whole = random_next(&state) >> random_below(&state, 64);
    snprintf(text, sizeof text, "%s%llu.%0*llu", i % 2 ? "-" : "",
             (unsigned long long)whole, 1 + i % 12,
             (unsigned long long)random_below(&state, 1000));
    double expected = strtod(text, NULL), found = number(text).f;
    CHECK_EQ(memcmp(&found, &expected, sizeof found), 0);
  }
}

static void malformed_numbers_are_refused(void) {
  static const char* const kTexts[] = {"",      "-",   ".", "-.", "..5",
                                       "1.2.3", "1-2", "+", "e",  "1.5x"};
  for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++)
    CHECK_EQ(number(kTexts[i]).kind, ST_JSON_NONE);
}

/* Texts of all lengths up to 40, without and with an escaped quote. */
static void texts_end_at_their_quote(void) {
  for (size_t size = 0; size <= 40; size++) {
    for (size_t escape = 0; escape <= size; escape++) {
      char text[64] = "\"";
      memset(text + 1, 'x', size);
      bool has_escape = escape + 1 < size;
      if (has_escape)
        memcpy(text + 1 + escape, "\\\"", 2);
      text[1 + size] = '"';
      const char *at = text, *end = text + size + 2;
      struct st_json value = st_json_read(&at, end);
      CHECK_EQ(value.kind, ST_JSON_TEXT);
      CHECK_EQ(value.size, size);
      CHECK_EQ(value.has_escapes, has_escape);
      CHECK(at == end);
      at = text;
      CHECK_EQ(st_json_read(&at, end - 1).kind, ST_JSON_NONE);
    }
  }
}

int main(void) {
  RUN(reals_are_those_of_strtod);
  RUN(malformed_numbers_are_refused);
  RUN(texts_end_at_their_quote);
  return 0;
}
