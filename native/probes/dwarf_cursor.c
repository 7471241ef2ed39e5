#include "probes/dwarf_cursor.h"

#include <string.h>

enum {
  ULEB = 0x01,
  UDATA2 = 0x02,
  UDATA4 = 0x03,
  UDATA8 = 0x04,
  SLEB = 0x09,
  SDATA2 = 0x0A,
  SDATA8 = 0x0C,
  RELATIVE_TO = 0x70,
  PCREL = 0x10,
};

const uint8_t* st_dwarf_pass(struct st_dwarf_cursor* c, uint64_t size) {
  const uint8_t* bytes = c->at;
  if (size > (uint64_t)(c->end - c->at)) {
    c->is_bad = true;
    c->at = c->end;
    return NULL;
  }
  c->at += size;
  return bytes;
}

uint64_t st_dwarf_take(struct st_dwarf_cursor* c, size_t size) {
  uint64_t value = 0;
  const uint8_t* bytes = st_dwarf_pass(c, size);
  if (bytes)
    memcpy(&value, bytes, size);
  return value;
}

int64_t st_dwarf_take_signed(struct st_dwarf_cursor* c, size_t size) {
  unsigned unused = 64 - 8 * (unsigned)size;
  return (int64_t)(st_dwarf_take(c, size) << unused) >> unused;
}

static uint64_t take_leb(struct st_dwarf_cursor* c, bool is_signed) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0;
  do {
    byte = (uint8_t)st_dwarf_take(c, 1);
    if (shift < 64)
      value |= (uint64_t)(byte & 0x7F) << shift;
    shift += 7;
  } while (byte & 0x80 && !c->is_bad);
  if (is_signed && byte & 0x40 && shift < 64)
    value |= ~UINT64_C(0) << shift;
  return value;
}

uint64_t st_dwarf_take_uleb(struct st_dwarf_cursor* c) {
  return take_leb(c, false);
}

int64_t st_dwarf_take_sleb(struct st_dwarf_cursor* c) {
  return (int64_t)take_leb(c, true);
}

uint64_t st_dwarf_take_format(struct st_dwarf_cursor* c, uint8_t encoding) {
  switch (encoding & ST_DWARF_FORMAT) {
    case ULEB:
      return st_dwarf_take_uleb(c);
    case SLEB:
      return (uint64_t)st_dwarf_take_sleb(c);
    case UDATA2:
      return st_dwarf_take(c, 2);
    case SDATA2:
      return (uint64_t)st_dwarf_take_signed(c, 2);
    case UDATA4:
      return st_dwarf_take(c, 4);
    case ST_DWARF_SDATA4:
      return (uint64_t)st_dwarf_take_signed(c, 4);
    case 0:
    case UDATA8:
    case SDATA8:
      return st_dwarf_take(c, 8);
    default:
      c->is_bad = true;
      return 0;
  }
}

uint64_t st_dwarf_take_address(struct st_dwarf_cursor* c, uint8_t encoding) {
  uint64_t place = c->address - (uint64_t)(c->end - c->at);
  uint64_t value = st_dwarf_take_format(c, encoding);
  switch (encoding & RELATIVE_TO) {
    case 0:
      return value;
    case PCREL:
      return value + place;
    case ST_DWARF_DATAREL:
      return value + c->header;
    default:
      c->is_bad = true;
      return 0;
  }
}
