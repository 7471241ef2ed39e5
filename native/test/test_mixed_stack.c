/* Tests of mixed stacks: the places of Python calls between C calls. */
#include "probes/mixed_stack.h"

#include <string.h>

#include "check.h"

static struct st_sampled_frame frames[ST_STACK_MAX_DEPTH];
static char shown[ST_STACK_MAX_DEPTH + 1];

/* Makes Python calls of capital letters, which Python code has made, and of
 * digits, which C code has made. */
static int make_python(const char* calls) {
  int depth = (int)strlen(calls);
  for (int i = 0; i < depth; i++)
    frames[i] = (struct st_sampled_frame){
        .code = (uint64_t)calls[i],
        .kind = calls[i] <= '9' ? ST_FRAME_BY_C : ST_FRAME_BY_PYTHON};
  return depth;
}

/* Mixes them with C calls of small letters; '*' is the loop. */
static bool mix(const char* python, const char* native, bool is_complete) {
  struct st_c_call calls[64];
  int count = (int)strlen(native);
  for (int i = 0; i < count; i++)
    calls[i] = (struct st_c_call){(uint64_t)native[i], native[i] == '*'};
  bool has_native;
  int depth = st_mixed_stack(frames, make_python(python), calls, count,
                             is_complete, &has_native);
  for (int i = 0; i < depth; i++) {
    shown[i] = (char)frames[i].code;
    CHECK_EQ(frames[i].kind == ST_FRAME_NATIVE, shown[i] >= 'a');
  }
  shown[depth] = 0;
  return has_native;
}

static void each_loop_is_replaced_by_its_calls(void) {
  CHECK(mix("1A2", "ab*cd*ef", true));
  CHECK(!strcmp(shown, "ab1cdA2"));
}

static void python_code_alone_has_no_c_calls(void) {
  CHECK(!mix("AB1", "*xy", true));
  CHECK(!strcmp(shown, "AB1"));
}

static void loop_that_has_not_added_its_call_is_left_out(void) {
  CHECK(mix("A1", "a*b*c", true));
  CHECK(!strcmp(shown, "abA1"));
}

static void calls_remain_where_the_c_calls_end_early(void) {
  CHECK(mix("1A2B3", "a*b", false));
  CHECK(!strcmp(shown, "a1bA2B3"));
  CHECK(mix("1A2", "a", false));
  CHECK(!strcmp(shown, "a1A2"));
}

static void c_calls_of_another_stack_are_not_used(void) {
  CHECK(!mix("1A2", "a*b", true));
  CHECK(!strcmp(shown, "1A2"));
  CHECK(!mix("A1", "a*b*c", false));
  CHECK(!strcmp(shown, "A1"));
}

static void stack_that_is_too_deep_has_python_calls_only(void) {
  static struct st_c_call calls[ST_STACK_MAX_DEPTH];
  bool has_native = true;
  make_python("A1");
  CHECK_EQ(st_mixed_stack(frames, 2, calls, ST_STACK_MAX_DEPTH - 1, false,
                          &has_native),
           2);
  CHECK(!has_native);
}

int main(void) {
  RUN(each_loop_is_replaced_by_its_calls);
  RUN(python_code_alone_has_no_c_calls);
  RUN(loop_that_has_not_added_its_call_is_left_out);
  RUN(calls_remain_where_the_c_calls_end_early);
  RUN(c_calls_of_another_stack_are_not_used);
  RUN(stack_that_is_too_deep_has_python_calls_only);
  return 0;
}
