/* Fuzzes the reader of exception frames, and their expressions.  An input changes
 * valid tables and a stack: it is a list of positions and values, of two bytes
 * and one.  Its first byte says which tables. */
#define CHECK_ABORTS
#include "../check.h"
#include "../unwind_tables.h"

/* At +4 the frame, at +8 a register is an expression; signals are handled. */
static void make_expressions(void) {
  static const char kExpressions[] = {
      0x44, 0x0F, 9,     0x70 + ST_UNWIND_SP,
      8,    0x3F, 0x33,  0x2A,
      0x33, 0x24, 0x22,  0x96,
      0x44, 0x10, SAVED, 4,
      0x38, 0x1C, 0x12,  0x13,
  };
  make_tables(kExpressions, sizeof kExpressions);
  mark_signal_frames();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char kFrame[] = {0x44,  0x0E, 16,   (char)(0x80 | SAVED),
                                2,     0x0A, 0x44, 0x0D,
                                SAVED, 0x44, 0x0B};
  uint64_t pcs[ST_NATIVE_MAX_DEPTH];
  if (size && data[0] % 2)
    make_expressions();
  else
    make_tables(kFrame, sizeof kFrame);
  for (int i = 0; i < STACK_WORDS; i++)
    stack[i] = (uint64_t)(CODE + 4 * i);
  for (size_t i = 1; i + 2 < size; i += 3) {
    size_t at = data[i] | (size_t)data[i + 1] << 8;
    if (at % 2)
      tables[at / 2 % TABLES_BYTES] = data[i + 2];
    else
      ((uint8_t*)stack)[at / 2 % sizeof stack] = data[i + 2];
  }
  for (int offset = 0; offset < 16; offset += 4) {
    int depth = st_native_stack(&kMemory, &kCode, 1, (uint64_t)(CODE + offset),
                                STACK, pcs);
    CHECK(depth > 0 && depth <= ST_NATIVE_MAX_DEPTH);
  }
  return 0;
}
