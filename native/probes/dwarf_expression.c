#include "probes/dwarf_expression.h"

#include <string.h>

enum operation {
  DEREF = 0x06,
  CONST1U = 0x08, /* Up to 0x0F: of 1, 2, 4, 8 bytes, unsigned and signed. */
  CONST8S = 0x0F,
  CONSTU = 0x10,
  CONSTS = 0x11,
  DUP = 0x12,
  DROP = 0x13,
  OVER = 0x14,
  PICK = 0x15,
  SWAP = 0x16,
  ROT = 0x17,
  AND = 0x1A,
  MINUS = 0x1C,
  MUL = 0x1E,
  NEG = 0x1F,
  NOT = 0x20,
  OR = 0x21,
  PLUS = 0x22,
  PLUS_UCONST = 0x23,
  SHL = 0x24,
  SHR = 0x25,
  SHRA = 0x26,
  XOR = 0x27,
  BRA = 0x28,
  EQ = 0x29,
  GE = 0x2A,
  GT = 0x2B,
  LE = 0x2C,
  LT = 0x2D,
  NE = 0x2E,
  SKIP = 0x2F,
  LIT0 = 0x30,
  LIT31 = 0x4F,
  BREG0 = 0x70,
  BREG31 = 0x8F,
  BREGX = 0x92,
  DEREF_SIZE = 0x94,
  NOP = 0x96,
};

struct machine {
  struct st_dwarf_cursor code;
  const struct st_memory* memory;
  const struct st_registers* registers;
  uint64_t stack[ST_EXPRESSION_MAX_DEPTH];
  int depth;
};

struct st_expression st_expression_take(struct st_dwarf_cursor* c) {
  struct st_expression e = {0};
  uint64_t size = st_dwarf_take_uleb(c);
  const uint8_t* bytes = st_dwarf_pass(c, size);
  if (bytes && size <= sizeof e.bytes) {
    e.size = (uint8_t)size;
    memcpy(e.bytes, bytes, size);
  }
  return e;
}

/* --- The stack ------------------------------------------------------------ */

static void push(struct machine* m, uint64_t value) {
  if (m->depth < ST_EXPRESSION_MAX_DEPTH)
    m->stack[m->depth++] = value;
  else
    m->code.is_bad = true;
}

static uint64_t pop(struct machine* m) {
  if (m->depth)
    return m->stack[--m->depth];
  m->code.is_bad = true;
  return 0;
}

/* Returns a number of the stack; 0 is the place on top. */
static uint64_t pick(struct machine* m, uint64_t place) {
  if (place < (uint64_t)m->depth)
    return m->stack[m->depth - 1 - (int)place];
  m->code.is_bad = true;
  return 0;
}

/* Moves the number on top below `count` others. */
static void sink(struct machine* m, int count) {
  if (m->depth <= count) {
    m->code.is_bad = true;
    return;
  }
  uint64_t* top = &m->stack[m->depth - 1];
  uint64_t value = *top;
  memmove(top - count + 1, top - count, (size_t)count * sizeof value);
  top[-count] = value;
}

/* --- Operations ----------------------------------------------------------- */

static void push_register(struct machine* m, uint64_t number) {
  uint64_t value = 0;
  int64_t offset = st_dwarf_take_sleb(&m->code);
  if (!st_register_read(m->registers, number, &value))
    m->code.is_bad = true;
  push(m, value + (uint64_t)offset);
}

static void push_constant(struct machine* m, uint8_t op) {
  size_t size = (size_t)1 << (op - CONST1U) / 2;
  bool is_signed = (op - CONST1U) % 2;
  push(m, is_signed ? (uint64_t)st_dwarf_take_signed(&m->code, size)
                    : st_dwarf_take(&m->code, size));
}

static void dereference(struct machine* m, uint64_t size) {
  uint64_t value = 0, address = pop(m);
  if (m->code.is_bad || size < 1 || size > sizeof value ||
      !m->memory->read(m->memory->self, address, &value, size))
    m->code.is_bad = true;
  push(m, value);
}

static void jump(struct machine* m, bool is_taken) {
  int64_t distance = st_dwarf_take_signed(&m->code, 2);
  if (distance < 0)
    m->code.is_bad = true;
  else if (is_taken)
    st_dwarf_pass(&m->code, (uint64_t)distance);
}

static uint64_t shifted(uint8_t op, uint64_t value, uint64_t bits) {
  uint64_t filling = op == SHRA && value >> 63 ? ~UINT64_C(0) : 0;
  if (bits == 0)
    return value;
  if (bits > 63)
    return filling;
  return op == SHL ? value << bits : value >> bits | filling << (64 - bits);
}

/* Computes an operation of two numbers.  Comparisons are signed. */
static uint64_t combine(struct machine* m, uint8_t op, uint64_t a, uint64_t b) {
  int64_t x = (int64_t)a, y = (int64_t)b;
  switch (op) {
    case AND:
      return a & b;
    case OR:
      return a | b;
    case XOR:
      return a ^ b;
    case PLUS:
      return a + b;
    case MINUS:
      return a - b;
    case MUL:
      return a * b;
    case SHL:
    case SHR:
    case SHRA:
      return shifted(op, a, b);
    case EQ:
      return x == y;
    case NE:
      return x != y;
    case LT:
      return x < y;
    case LE:
      return x <= y;
    case GT:
      return x > y;
    case GE:
      return x >= y;
    default:
      m->code.is_bad = true;
      return 0;
  }
}

static void execute_two(struct machine* m, uint8_t op) {
  uint64_t b = pop(m), a = pop(m);
  push(m, combine(m, op, a, b));
}

static void execute(struct machine* m, uint8_t op) {
  struct st_dwarf_cursor* c = &m->code;
  switch (op) {
    case NOP:
      break;
    case DEREF:
      dereference(m, sizeof(uint64_t));
      break;
    case DEREF_SIZE:
      dereference(m, st_dwarf_take(c, 1));
      break;
    case CONSTU:
      push(m, st_dwarf_take_uleb(c));
      break;
    case CONSTS:
      push(m, (uint64_t)st_dwarf_take_sleb(c));
      break;
    case DUP:
      push(m, pick(m, 0));
      break;
    case OVER:
      push(m, pick(m, 1));
      break;
    case PICK:
      push(m, pick(m, st_dwarf_take(c, 1)));
      break;
    case DROP:
      pop(m);
      break;
    case SWAP:
      sink(m, 1);
      break;
    case ROT:
      sink(m, 2);
      break;
    case NEG:
      push(m, 0 - pop(m));
      break;
    case NOT:
      push(m, ~pop(m));
      break;
    case PLUS_UCONST:
      push(m, pop(m) + st_dwarf_take_uleb(c));
      break;
    case SKIP:
      jump(m, true);
      break;
    case BRA:
      jump(m, pop(m) != 0);
      break;
    case BREGX:
      push_register(m, st_dwarf_take_uleb(c));
      break;
    default:
      execute_two(m, op);
  }
}

bool st_expression_evaluate(const struct st_expression* e,
                            const struct st_memory* memory,
                            const struct st_registers* registers,
                            const uint64_t* first, uint64_t* result) {
  struct machine m = {.code = {.at = e->bytes, .end = e->bytes + e->size},
                      .memory = memory,
                      .registers = registers};
  if (!e->size)
    return false;
  if (first)
    push(&m, *first);
  while (m.code.at < m.code.end && !m.code.is_bad) {
    uint8_t op = (uint8_t)st_dwarf_take(&m.code, 1);
    if (op >= LIT0 && op <= LIT31)
      push(&m, (uint64_t)(op - LIT0));
    else if (op >= BREG0 && op <= BREG31)
      push_register(&m, (uint64_t)(op - BREG0));
    else if (op >= CONST1U && op <= CONST8S)
      push_constant(&m, op);
    else
      execute(&m, op);
  }
  *result = pop(&m);
  return !m.code.is_bad;
}
