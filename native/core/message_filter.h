/* Message filter: copies a message without the fields that a bytecode denies.
 *
 * Each field is handled by the rule that the bytecode has for it:
 *
 *   simple   numbers re-encoded with the fewest bytes, delimited fields copied
 *   nested   its fields filtered in turn; a number in its place is dropped
 *   string   copied, then overwritten by the string filter
 *   denied   dropped
 *
 * A nested message may shrink after its length was written.  So the output has
 * a place for the length, as wide as the shortest varint of the old length.
 * The new length is filled in as a redundant varint of this width:
 *
 *   in    12 84 00  08 07  18 01     field 2, four bytes: fields 1 and 3
 *   out   12 02     08 07            field 2, two bytes: field 3 is denied
 *
 * Output is never longer than input, so `out` can be a plain buffer of the
 * input's size.
 *
 * A message is malformed if it contains a token that is incomplete or exceeds
 * the enclosing message, a wire type other than 0, 1, 2 and 5, a tag above 32
 * bits or of field 0, a length above ST_MAX_MESSAGE_SIZE, or allowed messages
 * nested deeper than ST_FILTER_MAX_DEPTH. A malformed message gives no output.
 *
 * The filter does not allocate or recurse, and it does not change while it
 * runs, so threads may share it if its string filter allows that.
 *
 * Source: docs/formats/protozero.md, "Filter bytecode".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter_bytecode.h"

enum { ST_FILTER_MAX_DEPTH = 512 };

/* Rewrites a string in place without changing its length.  Returns false to
 * stop the filter. */
typedef bool (*st_string_filter)(void* context, uint8_t* data, size_t size,
                                 uint32_t semantic_type);

struct st_message_filter {
  const struct st_filter_bytecode* bytecode;
  uint32_t root; /* The number of the outermost message in the bytecode. */
  /* The function that rewrites strings.  If NULL, strings stay unchanged. */
  st_string_filter string_filter;
  void* context; /* The first argument of each call of `string_filter`. */
};

/* Makes a nested message the root of the filter.  `path` holds the field
 * numbers from the old root to it.  Returns false, and changes nothing, if one
 * of these fields is no nested message. */
bool st_message_filter_set_root(struct st_message_filter* f,
                                const uint32_t* fields, size_t count);

enum st_filter_result {
  ST_FILTER_DONE,
  ST_FILTER_MALFORMED,
  ST_FILTER_STOPPED, /* The result if the string filter has stopped the run. */
};

/* Filters one message and writes the result to `out`, which has room for `size`
 * bytes. */
enum st_filter_result st_message_filter_run(const struct st_message_filter* f,
                                            const uint8_t* data, size_t size,
                                            uint8_t* out, size_t* out_size);

struct st_filter_counts {
  uint64_t packets;
  uint64_t malformed;
  /* The size of all packets before filtering, without their tags and
   * lengths. */
  uint64_t packet_bytes;
  /* The size of all packets after filtering, without their tags and lengths. */
  uint64_t filtered_bytes;
  size_t out_size;
};

/* Filters each packet of a trace (0a, length, packet, ...). A malformed packet
 * becomes an empty one.  Returns false if the string filter stopped the run, or
 * if `data` is not a sequence of complete packets. */
bool st_message_filter_run_trace(const struct st_message_filter* f,
                                 const uint8_t* data, size_t size, uint8_t* out,
                                 struct st_filter_counts* counts);
