/* Tests of request keys: equal texts have equal keys; malformed texts have
 * none. */
#include "core/request_key.h"

#include <string.h>

#include "check.h"

static const char kParent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

static uint64_t of_parent(const char* text) {
  return st_traceparent_key(text, strlen(text));
}

static uint64_t of_flow(const char* text) {
  return st_flow_header_key(text, strlen(text));
}

/* Returns the key of a text in which one character is replaced. */
static uint64_t with(size_t at, char c) {
  char text[sizeof kParent];
  memcpy(text, kParent, sizeof text);
  text[at] = c;
  return of_parent(text);
}

static void traceparent_has_a_key(void) {
  CHECK_EQ(of_parent(kParent), 0x8448eb211c80319cu * 0x9E3779B97F4A7C15u ^
                                   0x0af7651916cd43ddu ^ 0xb7ad6b7169203331u);
  CHECK(of_parent(kParent) ==
        of_parent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-x"));
  for (size_t at = 3; at < 52; at++) {
    if (at == 35)
      continue;
    uint64_t key = with(at, kParent[at] == '0' ? '1' : '0');
    CHECK(key && key != of_parent(kParent));
  }
}

static void malformed_traceparent_has_no_key(void) {
  for (size_t at = 0; at < sizeof kParent - 1; at++) {
    CHECK_EQ(with(at, 'A'), 0);
    CHECK_EQ(with(at, '_'), 0);
    CHECK_EQ(with(at, '\0'), 0);
    CHECK_EQ(with(at, '\xff'), 0);
    CHECK_EQ(st_traceparent_key(kParent, at), 0);
  }
  CHECK_EQ(
      of_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x"), 0);
  CHECK_EQ(of_parent("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
           0);
  CHECK_EQ(of_parent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
           0);
}

static void key_of_a_valid_traceparent_is_never_0(void) {
  /* The lower half of this trace id, times kOdd (request_key.c), is 1.  With
   * the span id 1 the key would be 1 ^ 1 = 0, which means "no key". */
  CHECK_EQ(of_parent("00-0000000000000000f1de83e19937733d-0000000000000001-00"),
           1);
}

static void x_stretto_flow_header_is_the_key(void) {
  CHECK_EQ(of_flow("0123456789abcdef"), 0x0123456789abcdef);
  CHECK_EQ(of_flow("0000000000000000"), 0);
  CHECK_EQ(of_flow("0123456789abcde"), 0);
  CHECK_EQ(of_flow("0123456789abcdef0"), 0);
  CHECK_EQ(of_flow("0123456789abcdeF"), 0);
  CHECK_EQ(of_flow("0x23456789abcdef"), 0);
  CHECK_EQ(of_flow(""), 0);
}

int main(void) {
  RUN(traceparent_has_a_key);
  RUN(malformed_traceparent_has_no_key);
  RUN(key_of_a_valid_traceparent_is_never_0);
  RUN(x_stretto_flow_header_is_the_key);
  return 0;
}
