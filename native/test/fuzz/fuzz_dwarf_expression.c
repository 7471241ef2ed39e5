/* Fuzzes the evaluation of DWARF expressions.  An input is a table: expressions,
 * each after its size.  The result of one is a register of the next. */
#define CHECK_ABORTS
#include "probes/dwarf_expression.h"

#include <string.h>

#include "../check.h"

enum { REGISTER = 3 };

/* Memory has no limits: each address has its own bytes. */
static bool read_any(void* self, uint64_t address, void* to, size_t size) {
  (void)self;
  CHECK(size >= 1 && size <= sizeof address);
  memcpy(to, &address, size);
  return address % 16 != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const struct st_memory memory = {.read = read_any};
  struct st_registers r = {.pc = 0x40001B, .known = 1 << ST_UNWIND_SP};
  struct st_dwarf_cursor c = {.at = data, .end = data + size};
  while (c.at < c.end) {
    const uint8_t* before = c.at;
    struct st_expression e = st_expression_take(&c);
    CHECK(c.at > before && e.size <= ST_EXPRESSION_MAX_BYTES);
    uint64_t result = 0, again = 0, *first = e.size % 2 ? &r.pc : NULL;
    bool found = st_expression_evaluate(&e, &memory, &r, first, &result);
    CHECK_EQ(found, st_expression_evaluate(&e, &memory, &r, first, &again));
    CHECK_EQ(result, again);
    r.values[REGISTER] = result;
    r.known |= (uint64_t)found << REGISTER;
  }
  return 0;
}
