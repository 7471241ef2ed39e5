#include "probes/eh_frame.h"

#include <string.h>

enum {
  SORTED_TABLE = ST_DWARF_DATAREL | ST_DWARF_SDATA4,
  TABLE_ENTRY = 8,
  MAX_TABLE = 1 << 22,
  MAX_REMEMBERED = 8,
};

#if defined(__aarch64__)
enum { LINK = 30 };
/* The bits of a return address without its signature. */
static const uint64_t CODE_BITS = (UINT64_C(1) << 48) - 1;
#endif

enum rule {
  SAME,
  UNDEFINED,
  AT_OFFSET, /* In memory, relative to the CFA. */
  IS_OFFSET,
  IN_REGISTER,
  AT_EXPRESSION,
  IS_EXPRESSION,
};

struct cie {
  uint64_t code_factor, return_register;
  int64_t data_factor;
  uint8_t encoding;
  bool has_sizes; /* FDEs have the size of further data. */
  bool is_signal_frame;
};

/* --- Entries -------------------------------------------------------------- */

static bool read(const struct st_memory* memory, uint64_t address, void* to,
                 size_t size) {
  return memory->read(memory->self, address, to, size);
}

/* Copies a FDE or CIE.  The cursor is behind its length. */
static bool read_entry(const struct st_memory* memory, uint64_t header,
                       uint64_t address, uint8_t* bytes,
                       struct st_dwarf_cursor* c) {
  uint32_t length;
  if (!read(memory, address, &length, sizeof length) || length < 8 ||
      length > ST_UNWIND_MAX_ENTRY ||
      !read(memory, address + sizeof length, bytes, length))
    return false;
  *c = (struct st_dwarf_cursor){.at = bytes,
                                .end = bytes + length,
                                .address = address + sizeof length + length,
                                .header = header};
  return true;
}

/* Returns the address of the FDE that may have a pc; 0 if there is none. */
static uint64_t find_entry(const struct st_memory* memory, uint64_t header,
                           uint64_t pc) {
  uint8_t bytes[24];
  if (!read(memory, header, bytes, sizeof bytes) || bytes[0] != 1 ||
      bytes[2] == ST_DWARF_OMIT || bytes[3] != SORTED_TABLE)
    return 0;
  struct st_dwarf_cursor c = {bytes + 4, bytes + sizeof bytes,
                              header + sizeof bytes, header, false};
  st_dwarf_take_address(&c, bytes[1]);
  uint64_t count = st_dwarf_take_address(&c, bytes[2]);
  uint64_t table = c.address - (uint64_t)(c.end - c.at);
  if (c.is_bad || !count || count > MAX_TABLE)
    return 0;
  int64_t wanted = (int64_t)(pc - header);
  uint64_t low = 0;
  int32_t entry[2];
  for (uint64_t high = count; high - low > 1;) {
    uint64_t middle = low + (high - low) / 2;
    if (!read(memory, table + middle * TABLE_ENTRY, entry, sizeof entry))
      return 0;
    if (entry[0] <= wanted)
      low = middle;
    else
      high = middle;
  }
  return read(memory, table + low * TABLE_ENTRY, entry, sizeof entry) &&
                 entry[0] <= wanted
             ? header + (uint64_t)(int64_t)entry[1]
             : 0;
}

/* Reads what the letters of an augmentation stand for. */
static void take_augmentation(struct st_dwarf_cursor* c, const char* letters,
                              struct cie* cie) {
  if (letters[0] != 'z') {
    c->is_bad |= letters[0] != 0;
    return;
  }
  cie->has_sizes = true;
  uint64_t size = st_dwarf_take_uleb(c);
  if (size > (uint64_t)(c->end - c->at)) {
    c->is_bad = true;
    return;
  }
  const uint8_t* after = c->at + size;
  for (const char* letter = letters + 1; *letter && !c->is_bad; letter++) {
    if (*letter == 'R')
      cie->encoding = (uint8_t)st_dwarf_take(c, 1);
    else if (*letter == 'P')
      st_dwarf_take_format(c, (uint8_t)st_dwarf_take(c, 1));
    else if (*letter == 'L')
      st_dwarf_take(c, 1);
    else if (*letter == 'S')
      cie->is_signal_frame = true;
    else if (*letter != 'B')
      break;
  }
  c->at = after;
}

/* Reads a CIE up to its instructions. */
static bool take_cie(struct st_dwarf_cursor* c, struct cie* cie) {
  *cie = (struct cie){0};
  if (st_dwarf_take(c, 4)) /* The id, which is 0. */
    return false;
  uint64_t version = st_dwarf_take(c, 1);
  const char* letters = (const char*)c->at;
  const uint8_t* end = memchr(c->at, 0, (size_t)(c->end - c->at));
  if (!end || (version != 1 && version != 3))
    return false;
  c->at = end + 1;
  cie->code_factor = st_dwarf_take_uleb(c);
  cie->data_factor = st_dwarf_take_sleb(c);
  cie->return_register =
      version == 1 ? st_dwarf_take(c, 1) : st_dwarf_take_uleb(c);
  take_augmentation(c, letters, cie);
  return !c->is_bad && cie->return_register < ST_UNWIND_REGISTERS;
}

/* --- Instructions --------------------------------------------------------- */

static void set_rule(struct st_dwarf_cursor* c, struct st_unwind_rules* row,
                     uint64_t number, enum rule rule, int64_t value) {
  if (number < ST_UNWIND_REGISTERS) {
    row->registers[number].kind = (uint8_t)rule;
    row->registers[number].value = value;
  } else if (rule == IN_REGISTER) {
    c->is_bad = true;
  }
}

static void restore(struct st_unwind_rules* row,
                    const struct st_unwind_rules* initial, uint64_t number) {
  if (number < ST_UNWIND_REGISTERS)
    row->registers[number] = initial->registers[number];
}

static void set_cfa(struct st_unwind_rules* row, uint64_t number,
                    int64_t offset) {
  row->cfa_expression.size = 0;
  row->cfa_register = number;
  row->cfa_offset = offset;
  row->has_cfa = true;
}

static int64_t scaled(int64_t value, int64_t factor) {
  return (int64_t)((uint64_t)value * (uint64_t)factor);
}

static void set_expression(struct st_dwarf_cursor* c,
                           struct st_unwind_rules* row, uint64_t number,
                           enum rule rule) {
  struct st_expression expression = st_expression_take(c);
  if (number < ST_UNWIND_REGISTERS) {
    row->registers[number].kind = (uint8_t)rule;
    row->registers[number].expression = expression;
  }
}

struct machine {
  const struct cie* cie;
  const struct st_unwind_rules* initial;
  struct st_unwind_rules row;
  struct st_unwind_rules remembered[MAX_REMEMBERED];
  int depth;
  uint64_t at; /* The address of code that has been reached. */
};

/* Executes an instruction without operands in its first byte. */
static void execute_extended(struct machine* m, struct st_dwarf_cursor* c,
                             uint8_t op) {
  struct st_unwind_rules* row = &m->row;
  int64_t factor = m->cie->data_factor;
  uint64_t number;
  switch (op) {
    case 0x00: /* nop */
    case 0x2D: /* negate_ra_state: the address is signed */
      break;
    case 0x01: /* set_loc */
      m->at = st_dwarf_take_address(c, m->cie->encoding);
      break;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
      m->at += st_dwarf_take(c, op == 0x02 ? 1 : 2) * m->cie->code_factor;
      break;
    case 0x04:
      m->at += st_dwarf_take(c, 4) * m->cie->code_factor;
      break;
    case 0x05: /* offset_extended */
      number = st_dwarf_take_uleb(c);
      set_rule(c, row, number, AT_OFFSET,
               scaled((int64_t)st_dwarf_take_uleb(c), factor));
      break;
    case 0x06: /* restore_extended */
      restore(row, m->initial, st_dwarf_take_uleb(c));
      break;
    case 0x07: /* undefined */
      set_rule(c, row, st_dwarf_take_uleb(c), UNDEFINED, 0);
      break;
    case 0x08: /* same_value */
      set_rule(c, row, st_dwarf_take_uleb(c), SAME, 0);
      break;
    case 0x09: /* register */
      number = st_dwarf_take_uleb(c);
      set_rule(c, row, number, IN_REGISTER, (int64_t)st_dwarf_take_uleb(c));
      break;
    case 0x0A: /* remember_state */
      if (m->depth < MAX_REMEMBERED)
        m->remembered[m->depth++] = *row;
      else
        c->is_bad = true;
      break;
    case 0x0B: /* restore_state */
      if (m->depth)
        *row = m->remembered[--m->depth];
      else
        c->is_bad = true;
      break;
    case 0x0C: /* def_cfa */
      number = st_dwarf_take_uleb(c);
      set_cfa(row, number, (int64_t)st_dwarf_take_uleb(c));
      break;
    case 0x0D: /* def_cfa_register */
      row->cfa_register = st_dwarf_take_uleb(c);
      break;
    case 0x0E: /* def_cfa_offset */
      row->cfa_offset = (int64_t)st_dwarf_take_uleb(c);
      break;
    case 0x0F: /* def_cfa_expression */
      row->cfa_expression = st_expression_take(c);
      row->has_cfa = row->cfa_expression.size > 0;
      break;
    case 0x10: /* expression */
      set_expression(c, row, st_dwarf_take_uleb(c), AT_EXPRESSION);
      break;
    case 0x11: /* offset_extended_sf */
      number = st_dwarf_take_uleb(c);
      set_rule(c, row, number, AT_OFFSET,
               scaled(st_dwarf_take_sleb(c), factor));
      break;
    case 0x12: /* def_cfa_sf */
      number = st_dwarf_take_uleb(c);
      set_cfa(row, number, scaled(st_dwarf_take_sleb(c), factor));
      break;
    case 0x13: /* def_cfa_offset_sf */
      row->cfa_offset = scaled(st_dwarf_take_sleb(c), factor);
      break;
    case 0x14: /* val_offset */
      number = st_dwarf_take_uleb(c);
      set_rule(c, row, number, IS_OFFSET,
               scaled((int64_t)st_dwarf_take_uleb(c), factor));
      break;
    case 0x15: /* val_offset_sf */
      number = st_dwarf_take_uleb(c);
      set_rule(c, row, number, IS_OFFSET,
               scaled(st_dwarf_take_sleb(c), factor));
      break;
    case 0x16: /* val_expression */
      set_expression(c, row, st_dwarf_take_uleb(c), IS_EXPRESSION);
      break;
    case 0x2E: /* GNU_args_size */
      st_dwarf_take_uleb(c);
      break;
    default:
      c->is_bad = true;
  }
}

/* Executes instructions until they are about code after `pc`. */
static void execute(struct machine* m, struct st_dwarf_cursor* c, uint64_t pc) {
  while (c->at < c->end && !c->is_bad && m->at <= pc) {
    uint8_t byte = (uint8_t)st_dwarf_take(c, 1), low = byte & 0x3F;
    switch (byte >> 6) {
      case 1: /* advance_loc */
        m->at += low * m->cie->code_factor;
        if (m->at > pc)
          return;
        break;
      case 2: /* offset */
        set_rule(c, &m->row, low, AT_OFFSET,
                 scaled((int64_t)st_dwarf_take_uleb(c), m->cie->data_factor));
        break;
      case 3: /* restore */
        restore(&m->row, m->initial, low);
        break;
      default:
        execute_extended(m, c, byte);
    }
  }
}

/* --- Callers -------------------------------------------------------------- */

/* Whether a place is below the function's stack.  A register that was saved there has
 * its value again: the tables don't tell that an epilogue has popped it. */
static bool is_popped(const struct st_unwind_rules* row,
                      const struct st_registers* r, uint64_t place,
                      uint64_t number) {
  return number != row->return_register && place < r->values[ST_UNWIND_SP];
}

/* Finds a register of the caller. */
static bool recover(const struct st_memory* memory,
                    const struct st_unwind_rules* row, uint64_t cfa,
                    const struct st_registers* from, struct st_registers* to,
                    uint64_t number) {
  const struct st_unwind_rule* rule = &row->registers[number];
  uint64_t* value = &to->values[number];
  uint64_t place;
  bool found = true, is_known = true;
  switch ((enum rule)rule->kind) {
    case SAME:
      return true;
    case AT_OFFSET:
      place = cfa + (uint64_t)rule->value;
      found = read(memory, place, value, sizeof *value);
      if (!found && is_popped(row, from, place, number))
        return true;
      break;
    case IS_OFFSET:
      *value = cfa + (uint64_t)rule->value;
      break;
    case IN_REGISTER:
      is_known = st_register_read(from, (uint64_t)rule->value, value);
      break;
    case AT_EXPRESSION:
      is_known =
          st_expression_evaluate(&rule->expression, memory, from, &cfa, &place);
      found = !is_known || read(memory, place, value, sizeof *value);
      break;
    case IS_EXPRESSION:
      is_known =
          st_expression_evaluate(&rule->expression, memory, from, &cfa, value);
      break;
    default:
      is_known = false;
  }
  uint64_t bit = UINT64_C(1) << number;
  to->known = is_known ? to->known | bit : to->known & ~bit;
  return found;
}

static bool find_cfa(const struct st_memory* memory,
                     const struct st_unwind_rules* row,
                     const struct st_registers* r, uint64_t* cfa) {
  if (row->cfa_expression.size)
    return st_expression_evaluate(&row->cfa_expression, memory, r, NULL, cfa);
  if (!row->has_cfa || !st_register_read(r, row->cfa_register, cfa))
    return false;
  *cfa += (uint64_t)row->cfa_offset;
  return true;
}

bool st_eh_frame_apply(const struct st_memory* memory,
                       const struct st_unwind_rules* row,
                       struct st_registers* r) {
  uint64_t cfa, sp;
  if (!st_register_read(r, ST_UNWIND_SP, &sp) ||
      !find_cfa(memory, row, r, &cfa))
    return false;
  struct st_registers caller = *r;
  for (uint64_t i = 0; i < ST_UNWIND_REGISTERS; i++)
    if (!recover(memory, row, cfa, r, &caller, i))
      return false;
  bool is_last = row->registers[row->return_register].kind == UNDEFINED;
  if (!is_last && !(caller.known >> row->return_register & 1))
    return false;
  caller.pc = is_last ? 0 : caller.values[row->return_register];
  caller.is_call = !row->is_signal_frame;
#if defined(__aarch64__)
  caller.pc &= CODE_BITS;
#endif
  bool is_stuck = cfa == sp && caller.pc == r->pc;
  if (cfa < sp || is_stuck)
    return false;
  caller.values[ST_UNWIND_SP] = cfa;
  caller.known |= UINT64_C(1) << ST_UNWIND_SP;
  *r = caller;
  return true;
}

#if defined(__aarch64__)

bool st_eh_frame_leave_stub(const struct st_memory* memory,
                            struct st_registers* r) {
  (void)memory;
  if (!st_register_read(r, LINK, &r->pc))
    return false;
  r->pc &= CODE_BITS;
  r->known &= ~(UINT64_C(1) << LINK);
  r->is_call = true;
  return true;
}

#else

bool st_eh_frame_leave_stub(const struct st_memory* memory,
                            struct st_registers* r) {
  uint64_t sp;
  if (!st_register_read(r, ST_UNWIND_SP, &sp) ||
      !read(memory, sp, &r->pc, sizeof r->pc))
    return false;
  r->values[ST_UNWIND_SP] = sp + sizeof r->pc;
  r->is_call = true;
  return true;
}

#endif

bool st_eh_frame_find(const struct st_memory* memory, uint64_t header,
                      uint64_t pc, struct st_unwind_rules* rules) {
  uint8_t bytes[2][ST_UNWIND_MAX_ENTRY];
  struct st_dwarf_cursor fde, shared;
  struct cie cie;
  uint64_t address = find_entry(memory, header, pc);
  if (!address || !read_entry(memory, header, address, bytes[0], &fde))
    return false;
  uint64_t back = st_dwarf_take(&fde, 4);
  if (!back ||
      !read_entry(memory, header, address + 4 - back, bytes[1], &shared) ||
      !take_cie(&shared, &cie))
    return false;
  uint64_t begin = st_dwarf_take_address(&fde, cie.encoding);
  uint64_t size = st_dwarf_take_format(&fde, cie.encoding);
  uint64_t further = cie.has_sizes ? st_dwarf_take_uleb(&fde) : 0;
  if (fde.is_bad || pc - begin >= size ||
      further > (uint64_t)(fde.end - fde.at))
    return false;
  fde.at += further;
  static const struct st_unwind_rules kNothing;
  struct machine m = {.cie = &cie, .initial = &kNothing, .at = begin};
  execute(&m, &shared, begin);
  struct st_unwind_rules initial = m.row;
  m.initial = &initial;
  m.at = begin;
  execute(&m, &fde, pc);
  *rules = m.row;
  rules->function = begin;
  rules->return_register = cie.return_register;
  rules->is_signal_frame = cie.is_signal_frame;
  return !shared.is_bad && !fde.is_bad;
}

bool st_eh_frame_step(const struct st_memory* memory, uint64_t header,
                      struct st_registers* r) {
  struct st_unwind_rules rules;
  return st_eh_frame_find(memory, header, r->pc - r->is_call, &rules) &&
         st_eh_frame_apply(memory, &rules, r);
}
