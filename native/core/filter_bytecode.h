/* Filter bytecode: tells which fields of which messages may stay in a trace.
 *
 * It is encoded as a sequence of varints, each a 32-bit word.  The last word is
 * a checksum: the low half of FNV-1a-64 over the other words, each as four
 * bytes in little-endian order.  A word is (field_number << 3) | opcode:
 *
 *   0 end of message              messages are numbered as they end, from 0
 *   1 simple field                any scalar, string, bytes, opaque message
 *   2 range of simple fields      next word: how many
 *   3 nested field                next word: number of the message inside
 *   4 string to be rewritten
 *   5 the same, with a type       next word: its semantic type, 16 bits
 *
 * An overlay, encoded in the same way, changes rules for readers that support
 * more opcodes.  It is a sequence of triplets, sorted by message and field:
 *
 *   [message number, (field_number << 3) | opcode 1, 4 or 5, argument]
 *
 * After loading, each message is a table: the rules of fields below 128,
 * indexed by field number, then ascending ranges (first, end, rule) for the
 * others:
 *
 *   words    | n | rule 0 .. rule n-1 | first end rule | first end rule | ...
 *   offsets    ^ message 0                             ^ message 1    ^ end
 *
 * Memory: at most 520 bytes for each two words of bytecode.  A loaded table is
 * immutable, so any number of threads may query it.
 *
 * Source: docs/formats/protozero.md, "Filter bytecode".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_FILTER_END_OF_MESSAGE = 0,
  ST_FILTER_SIMPLE_FIELD = 1,
  ST_FILTER_SIMPLE_FIELD_RANGE = 2,
  ST_FILTER_NESTED_FIELD = 3,
  ST_FILTER_STRING = 4,
  ST_FILTER_STRING_WITH_TYPE = 5,
};

struct st_filter_words {
  uint32_t* data;
  size_t count, capacity;
};

struct st_filter_bytecode {
  struct st_filter_words words;
  /* The start of each message's table in `words`, then the end of the last
   * table. */
  struct st_filter_words offsets;
};

/* Loads the bytecode, and the overlay unless the overlay's size is 0.  Returns
 * NULL on success.  On failure returns the reason, such as "it is empty", and
 * there is nothing to free. */
const char* st_filter_bytecode_load(struct st_filter_bytecode* b,
                                    const uint8_t* data, size_t size,
                                    const uint8_t* overlay,
                                    size_t overlay_size);
void st_filter_bytecode_free(struct st_filter_bytecode* b);

size_t st_filter_bytecode_messages(const struct st_filter_bytecode* b);

#define ST_FILTER_DENIED 0u
/* The bit that marks a field as allowed: set in each rule except
 * ST_FILTER_DENIED. */
#define ST_FILTER_ALLOWED 0x80000000u
#define ST_FILTER_RULE_SIMPLE 0xFFFFFFFFu
#define ST_FILTER_RULE_STRING 0xFFFFFFFEu
/* The rule of a string with a semantic type: this constant | semantic type. */
#define ST_FILTER_RULE_TYPED_STRING 0xFFFF0000u

/* Returns the rule of a message's field.  If there is no such message, the
 * field is denied. */
uint32_t st_filter_bytecode_query(const struct st_filter_bytecode* b,
                                  uint32_t message, uint32_t field);

static inline bool st_filter_is_string(uint32_t rule) {
  return rule >= ST_FILTER_RULE_TYPED_STRING && rule != ST_FILTER_RULE_SIMPLE;
}

static inline uint32_t st_filter_semantic_type(uint32_t rule) {
  return rule == ST_FILTER_RULE_STRING ? 0 : rule & 0xFFFF;
}

static inline bool st_filter_is_nested(uint32_t rule) {
  return rule >= ST_FILTER_ALLOWED && rule < ST_FILTER_RULE_TYPED_STRING;
}

static inline uint32_t st_filter_nested_message(uint32_t rule) {
  return rule & ~ST_FILTER_ALLOWED;
}
