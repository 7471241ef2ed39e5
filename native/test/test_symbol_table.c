/* Tests of tables of symbols, and of the kernel's symbols. */
#include "probes/symbol_table.h"

#include <string.h>

#include "check.h"
#include "probes/kernel_symbols.h"

static bool is(const struct st_symbol_table* t, uint64_t address,
               const char* name) {
  const char* found = st_symbol_table_find(t, address);
  return name ? found && !strcmp(found, name) : !found;
}

/* Returns a copy that the table frees. */
static char* copied(const char* text, size_t size) {
  char* copy = malloc(size);
  CHECK(copy);
  return memcpy(copy, text, size);
}

static void function_is_found_between_its_address_and_end(void) {
  struct st_symbol_table t = {.text = copied("a\0b\0c", 6), .text_size = 6};
  CHECK(st_symbol_table_add(&t, 200, 10, 2));
  CHECK(st_symbol_table_add(&t, 100, 0, 0));
  CHECK(st_symbol_table_add(&t, 100, 5, 4));
  st_symbol_table_sort(&t);
  CHECK(is(&t, 99, NULL));
  CHECK(is(&t, 100, "a"));
  CHECK(is(&t, 199, "a"));
  CHECK(is(&t, 200, "b"));
  CHECK(is(&t, 209, "b"));
  CHECK(is(&t, 210, NULL));
  st_symbol_table_free(&t);
  CHECK(is(&t, 100, NULL));
}

static void name_beyond_the_text_is_none(void) {
  struct st_symbol_table t = {.text = copied("a", 2), .text_size = 2};
  CHECK(st_symbol_table_add(&t, 1, 0, 2));
  st_symbol_table_sort(&t);
  CHECK(is(&t, 1, NULL));
  st_symbol_table_free(&t);
}

static void parse(struct st_symbol_table* t, const char* text) {
  st_kernel_symbols_parse(t, copied(text, strlen(text) + 1), strlen(text));
}

static void kernel_symbols_are_code_without_modules(void) {
  struct st_symbol_table t = {0};
  parse(&t,
        "ffffffff81000000 T _text\n"
        "ffffffff81000040 D data\n"
        "ffffffff81000080 t do_work\n"
        "bad\n"
        "ffffffffc0000000 t nf_in\t[nf]\n");
  CHECK_EQ(t.count, 3);
  CHECK(is(&t, 0xffffffff81000041, "_text"));
  CHECK(is(&t, 0xffffffff81000081, "do_work"));
  CHECK(is(&t, 0xffffffffc0000001, "nf_in"));
  st_symbol_table_free(&t);
}

static void hidden_addresses_give_no_symbols(void) {
  struct st_symbol_table t = {0};
  parse(&t, "0000000000000000 T _text\n0000000000000000 T b\n");
  CHECK_EQ(t.count, 0);
  st_symbol_table_free(&t);
  parse(&t, "");
  CHECK_EQ(t.count, 0);
  st_symbol_table_free(&t);
}

int main(void) {
  RUN(function_is_found_between_its_address_and_end);
  RUN(name_beyond_the_text_is_none);
  RUN(kernel_symbols_are_code_without_modules);
  RUN(hidden_addresses_give_no_symbols);
  return 0;
}
