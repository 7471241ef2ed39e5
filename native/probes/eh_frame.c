#include "probes/eh_frame.h"

#include <string.h>

enum {
  /* Encodings of addresses: a format and what the number is relative to. */
  FORMAT = 0x0F,
  ULEB = 0x01,
  UDATA2 = 0x02,
  UDATA4 = 0x03,
  UDATA8 = 0x04,
  SLEB = 0x09,
  SDATA2 = 0x0A,
  SDATA4 = 0x0B,
  SDATA8 = 0x0C,
  RELATIVE_TO = 0x70,
  PCREL = 0x10,
  DATAREL = 0x30,
  OMIT = 0xFF,
  SORTED_TABLE = DATAREL | SDATA4,
  TABLE_ENTRY = 8,
  MAX_TABLE = 1 << 22,
  MAX_REMEMBERED = 8,
};

/* Bytes of the process, and where they are in its memory. */
struct cursor {
  const uint8_t *at, *end;
  uint64_t address; /* Of `end`. */
  uint64_t header;
  bool is_bad;
};

enum rule { SAME, UNDEFINED, AT_OFFSET, IS_OFFSET, IN_REGISTER, EXPRESSION };

struct cie {
  uint64_t code_factor, return_register;
  int64_t data_factor;
  uint8_t encoding;
  bool has_sizes; /* FDEs have the size of further data. */
};

/* --- Numbers -------------------------------------------------------------- */

static uint64_t take(struct cursor* c, size_t size) {
  uint64_t value = 0;
  if ((size_t)(c->end - c->at) < size) {
    c->is_bad = true;
    c->at = c->end;
    return 0;
  }
  memcpy(&value, c->at, size);
  c->at += size;
  return value;
}

static uint64_t take_leb(struct cursor* c, bool is_signed) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0;
  do {
    byte = (uint8_t)take(c, 1);
    if (shift < 64)
      value |= (uint64_t)(byte & 0x7F) << shift;
    shift += 7;
  } while (byte & 0x80 && !c->is_bad);
  if (is_signed && byte & 0x40 && shift < 64)
    value |= ~UINT64_C(0) << shift;
  return value;
}

static uint64_t take_uleb(struct cursor* c) {
  return take_leb(c, false);
}

static int64_t take_sleb(struct cursor* c) {
  return (int64_t)take_leb(c, true);
}

static uint64_t take_format(struct cursor* c, uint8_t format) {
  switch (format) {
    case ULEB:
      return take_uleb(c);
    case SLEB:
      return (uint64_t)take_sleb(c);
    case UDATA2:
      return take(c, 2);
    case SDATA2:
      return (uint64_t)(int64_t)(int16_t)take(c, 2);
    case UDATA4:
      return take(c, 4);
    case SDATA4:
      return (uint64_t)(int64_t)(int32_t)take(c, 4);
    case 0:
    case UDATA8:
    case SDATA8:
      return take(c, 8);
    default:
      c->is_bad = true;
      return 0;
  }
}

static uint64_t take_address(struct cursor* c, uint8_t encoding) {
  uint64_t place = c->address - (uint64_t)(c->end - c->at);
  uint64_t value = take_format(c, encoding & FORMAT);
  switch (encoding & RELATIVE_TO) {
    case 0:
      return value;
    case PCREL:
      return value + place;
    case DATAREL:
      return value + c->header;
    default:
      c->is_bad = true;
      return 0;
  }
}

/* --- Entries -------------------------------------------------------------- */

static bool read(const struct st_memory* memory, uint64_t address, void* to,
                 size_t size) {
  return memory->read(memory->self, address, to, size);
}

/* Copies a FDE or CIE.  The cursor is behind its length. */
static bool read_entry(const struct st_memory* memory, uint64_t header,
                       uint64_t address, uint8_t* bytes, struct cursor* c) {
  uint32_t length;
  if (!read(memory, address, &length, sizeof length) || length < 8 ||
      length > ST_UNWIND_MAX_ENTRY ||
      !read(memory, address + sizeof length, bytes, length))
    return false;
  *c = (struct cursor){.at = bytes,
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
      bytes[2] == OMIT || bytes[3] != SORTED_TABLE)
    return 0;
  struct cursor c = {bytes + 4, bytes + sizeof bytes, header + sizeof bytes,
                     header, false};
  take_address(&c, bytes[1]);
  uint64_t count = take_address(&c, bytes[2]);
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
static void take_augmentation(struct cursor* c, const char* letters,
                              struct cie* cie) {
  if (letters[0] != 'z') {
    c->is_bad |= letters[0] != 0;
    return;
  }
  cie->has_sizes = true;
  uint64_t size = take_uleb(c);
  if (size > (uint64_t)(c->end - c->at)) {
    c->is_bad = true;
    return;
  }
  const uint8_t* after = c->at + size;
  for (const char* letter = letters + 1; *letter && !c->is_bad; letter++) {
    if (*letter == 'R')
      cie->encoding = (uint8_t)take(c, 1);
    else if (*letter == 'P')
      take_format(c, (uint8_t)take(c, 1) & FORMAT);
    else if (*letter == 'L')
      take(c, 1);
    else if (*letter != 'S' && *letter != 'B')
      break;
  }
  c->at = after;
}

/* Reads a CIE up to its instructions. */
static bool take_cie(struct cursor* c, struct cie* cie) {
  *cie = (struct cie){0};
  if (take(c, 4)) /* The id, which is 0. */
    return false;
  uint64_t version = take(c, 1);
  const char* letters = (const char*)c->at;
  const uint8_t* end = memchr(c->at, 0, (size_t)(c->end - c->at));
  if (!end || (version != 1 && version != 3))
    return false;
  c->at = end + 1;
  cie->code_factor = take_uleb(c);
  cie->data_factor = take_sleb(c);
  cie->return_register = version == 1 ? take(c, 1) : take_uleb(c);
  take_augmentation(c, letters, cie);
  return !c->is_bad && cie->return_register < ST_UNWIND_REGISTERS;
}

/* --- Instructions --------------------------------------------------------- */

static void set_rule(struct cursor* c, struct st_unwind_rules* row,
                     uint64_t number, enum rule rule, int64_t value) {
  if (number < ST_UNWIND_REGISTERS) {
    row->registers[number].kind = (int32_t)rule;
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
  row->cfa_register = number;
  row->cfa_offset = offset;
  row->has_cfa = true;
}

static int64_t scaled(int64_t value, int64_t factor) {
  return (int64_t)((uint64_t)value * (uint64_t)factor);
}

static void skip_expression(struct cursor* c) {
  uint64_t size = take_uleb(c);
  c->is_bad |= size > (uint64_t)(c->end - c->at);
  c->at = c->is_bad ? c->end : c->at + size;
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
static void execute_extended(struct machine* m, struct cursor* c, uint8_t op) {
  struct st_unwind_rules* row = &m->row;
  int64_t factor = m->cie->data_factor;
  uint64_t number;
  switch (op) {
    case 0x00: /* nop */
    case 0x2D: /* negate_ra_state: the address is signed */
      break;
    case 0x01: /* set_loc */
      m->at = take_address(c, m->cie->encoding);
      break;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
      m->at += take(c, op == 0x02 ? 1 : 2) * m->cie->code_factor;
      break;
    case 0x04:
      m->at += take(c, 4) * m->cie->code_factor;
      break;
    case 0x05: /* offset_extended */
      number = take_uleb(c);
      set_rule(c, row, number, AT_OFFSET,
               scaled((int64_t)take_uleb(c), factor));
      break;
    case 0x06: /* restore_extended */
      restore(row, m->initial, take_uleb(c));
      break;
    case 0x07: /* undefined */
      set_rule(c, row, take_uleb(c), UNDEFINED, 0);
      break;
    case 0x08: /* same_value */
      set_rule(c, row, take_uleb(c), SAME, 0);
      break;
    case 0x09: /* register */
      number = take_uleb(c);
      set_rule(c, row, number, IN_REGISTER, (int64_t)take_uleb(c));
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
      number = take_uleb(c);
      set_cfa(row, number, (int64_t)take_uleb(c));
      break;
    case 0x0D: /* def_cfa_register */
      row->cfa_register = take_uleb(c);
      break;
    case 0x0E: /* def_cfa_offset */
      row->cfa_offset = (int64_t)take_uleb(c);
      break;
    case 0x0F: /* def_cfa_expression */
      skip_expression(c);
      row->has_cfa = false;
      break;
    case 0x10: /* expression, val_expression */
    case 0x16:
      number = take_uleb(c);
      skip_expression(c);
      set_rule(c, row, number, EXPRESSION, 0);
      break;
    case 0x11: /* offset_extended_sf */
      number = take_uleb(c);
      set_rule(c, row, number, AT_OFFSET, scaled(take_sleb(c), factor));
      break;
    case 0x12: /* def_cfa_sf */
      number = take_uleb(c);
      set_cfa(row, number, scaled(take_sleb(c), factor));
      break;
    case 0x13: /* def_cfa_offset_sf */
      row->cfa_offset = scaled(take_sleb(c), factor);
      break;
    case 0x14: /* val_offset */
      number = take_uleb(c);
      set_rule(c, row, number, IS_OFFSET,
               scaled((int64_t)take_uleb(c), factor));
      break;
    case 0x15: /* val_offset_sf */
      number = take_uleb(c);
      set_rule(c, row, number, IS_OFFSET, scaled(take_sleb(c), factor));
      break;
    case 0x2E: /* GNU_args_size */
      take_uleb(c);
      break;
    default:
      c->is_bad = true;
  }
}

/* Executes instructions until they are about code after `pc`. */
static void execute(struct machine* m, struct cursor* c, uint64_t pc) {
  while (c->at < c->end && !c->is_bad && m->at <= pc) {
    uint8_t byte = (uint8_t)take(c, 1), low = byte & 0x3F;
    switch (byte >> 6) {
      case 1: /* advance_loc */
        m->at += low * m->cie->code_factor;
        if (m->at > pc)
          return;
        break;
      case 2: /* offset */
        set_rule(c, &m->row, low, AT_OFFSET,
                 scaled((int64_t)take_uleb(c), m->cie->data_factor));
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

static bool is_known(const struct st_registers* r, uint64_t number) {
  return number < ST_UNWIND_REGISTERS && r->known >> number & 1;
}

static bool recover(const struct st_memory* memory,
                    const struct st_unwind_rules* row, uint64_t cfa,
                    const struct st_registers* from, struct st_registers* to,
                    uint64_t number) {
  int64_t value = row->registers[number].value;
  bool found = true;
  switch ((enum rule)row->registers[number].kind) {
    case SAME:
      return true;
    case AT_OFFSET:
      found = read(memory, cfa + (uint64_t)value, &to->values[number], 8);
      break;
    case IS_OFFSET:
      to->values[number] = cfa + (uint64_t)value;
      break;
    case IN_REGISTER:
      if (is_known(from, (uint64_t)value)) {
        to->values[number] = from->values[value];
        break;
      }
      /* fall through */
    default:
      to->known &= ~(UINT64_C(1) << number);
      return true;
  }
  to->known |= UINT64_C(1) << number;
  return found;
}

bool st_eh_frame_apply(const struct st_memory* memory,
                       const struct st_unwind_rules* row,
                       struct st_registers* r) {
  if (!row->has_cfa || !is_known(r, ST_UNWIND_SP) ||
      !is_known(r, row->cfa_register))
    return false;
  uint64_t cfa = r->values[row->cfa_register] + (uint64_t)row->cfa_offset;
  struct st_registers caller = *r;
  for (uint64_t i = 0; i < ST_UNWIND_REGISTERS; i++)
    if (!recover(memory, row, cfa, r, &caller, i))
      return false;
  bool is_last = row->registers[row->return_register].kind == UNDEFINED;
  if (!is_last && !is_known(&caller, row->return_register))
    return false;
  caller.pc = is_last ? 0 : caller.values[row->return_register];
#if defined(__aarch64__)
  caller.pc &= (UINT64_C(1) << 48) - 1; /* Without its signature. */
#endif
  bool is_stuck = cfa == r->values[ST_UNWIND_SP] && caller.pc == r->pc;
  if (cfa < r->values[ST_UNWIND_SP] || is_stuck)
    return false;
  caller.values[ST_UNWIND_SP] = cfa;
  caller.known |= UINT64_C(1) << ST_UNWIND_SP;
  *r = caller;
  return true;
}

bool st_eh_frame_find(const struct st_memory* memory, uint64_t header,
                      uint64_t pc, struct st_unwind_rules* rules) {
  uint8_t bytes[2][ST_UNWIND_MAX_ENTRY];
  struct cursor fde, shared;
  struct cie cie;
  uint64_t address = find_entry(memory, header, pc);
  if (!address || !read_entry(memory, header, address, bytes[0], &fde))
    return false;
  uint64_t back = take(&fde, 4);
  if (!back ||
      !read_entry(memory, header, address + 4 - back, bytes[1], &shared) ||
      !take_cie(&shared, &cie))
    return false;
  uint64_t begin = take_address(&fde, cie.encoding);
  uint64_t size = take_format(&fde, cie.encoding & FORMAT);
  uint64_t further = cie.has_sizes ? take_uleb(&fde) : 0;
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
  return !shared.is_bad && !fde.is_bad;
}

bool st_eh_frame_step(const struct st_memory* memory, uint64_t header,
                      bool is_call, struct st_registers* r) {
  struct st_unwind_rules rules;
  return st_eh_frame_find(memory, header, r->pc - is_call, &rules) &&
         st_eh_frame_apply(memory, &rules, r);
}
