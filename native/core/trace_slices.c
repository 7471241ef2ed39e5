#include "trace_slices.h"

#include <stdbool.h>
#include <string.h>

#include "wire.h"

enum {
  PACKET_TAG = 0x0a,
  SLICE_TAG = 0x12,
  LAST_TAG = 0x10,
  LAST_MARK_SIZE = 2,
  /* The size of a varint whose value is at most ST_MAX_MESSAGE_SIZE. */
  MAX_LENGTH_SIZE = 4,
};

/* Returns the content of the delimited field at p, and stores its end.  Returns
 * NULL if there is no such field at p, or if the field ends after `end`. */
static const uint8_t* open_field(const uint8_t* p, const uint8_t* end,
                                 uint8_t tag, const uint8_t** field_end) {
  uint64_t size = 0;
  if (p == end || *p != tag)
    return NULL;
  p = st_get_varint_max(p + 1, end, MAX_LENGTH_SIZE, &size);
  if (!p || size > (size_t)(end - p))
    return NULL;
  *field_end = p + size;
  return p;
}

/* Writes a slice that contains one packet.  `field` is the packet with its tag
 * and length. */
static uint8_t* put_slice(uint8_t* out, const uint8_t* field, size_t size) {
  *out++ = SLICE_TAG;
  out = st_put_varint(out, size + LAST_MARK_SIZE);
  memcpy(out, field, size);
  out += size;
  *out++ = LAST_TAG;
  *out++ = 1;
  return out;
}

size_t st_slices_pack(const uint8_t* trace, size_t size, size_t limit,
                      uint8_t* out, size_t* written) {
  const uint8_t* p = trace;
  const uint8_t* begin = out;
  const uint8_t* next = p;
  while (open_field(p, trace + size, PACKET_TAG, &next)) {
    /* ST_SLICE_OVERHEAD is added to the size of a packet without its tag and
     * length.  The field here includes both; they take at least two bytes. */
    size_t cost = (size_t)(next - p) + ST_SLICE_OVERHEAD - 2;
    if (cost > limit)
      break;
    limit -= cost;
    out = put_slice(out, p, (size_t)(next - p));
    p = next;
  }
  *written = (size_t)(out - begin);
  return (size_t)(p - trace);
}

/* Returns whether the slice in [p, end) consists of a complete packet and the
 * field last_slice_for_packet. */
static bool is_packet(const uint8_t* p, const uint8_t* end) {
  if (end - p < LAST_MARK_SIZE)
    return false;
  end -= LAST_MARK_SIZE;
  const uint8_t* packet_end = p;
  return end[0] == LAST_TAG && end[1] == 1 &&
         open_field(p, end, PACKET_TAG, &packet_end) && packet_end == end;
}

/* One slice of a reply, which contains a part of a packet. */
struct slice {
  const uint8_t* data;
  size_t size;
  bool is_last;
};

/* Reads the content of a slice.  Returns false unless the content has the form
 * that Perfetto's service writes: `data`, then perhaps
 * last_slice_for_packet. */
static bool read_slice(const uint8_t* p, const uint8_t* end,
                       struct slice* slice) {
  const uint8_t* data_end = p;
  const uint8_t* data = open_field(p, end, PACKET_TAG, &data_end);
  if (!data)
    return false;
  *slice = (struct slice){data, (size_t)(data_end - data), false};
  if (data_end == end)
    return true;
  slice->is_last = end - data_end == LAST_MARK_SIZE && data_end[1] == 1;
  return end - data_end == LAST_MARK_SIZE && data_end[0] == LAST_TAG &&
         data_end[1] <= 1;
}

/* Returns the end of the packet whose first slice is at p, and stores the
 * packet's size.  Returns NULL if the packet's last slice is missing. */
static const uint8_t* find_end(const uint8_t* p, const uint8_t* end,
                               size_t* packet_size) {
  struct slice slice = {0};
  *packet_size = 0;
  while (!slice.is_last) {
    const uint8_t* next = p;
    p = open_field(p, end, SLICE_TAG, &next);
    if (!p || !read_slice(p, next, &slice))
      return NULL;
    *packet_size += slice.size;
    p = next;
  }
  return p;
}

/* Writes the packet whose slices are in [p, end), a range that find_end() has
 * returned. */
static uint8_t* put_packet(uint8_t* out, const uint8_t* p, const uint8_t* end,
                           size_t packet_size) {
  *out++ = PACKET_TAG;
  out = st_put_varint(out, packet_size);
  while (p != end) {
    struct slice slice = {0};
    const uint8_t* next = end;
    p = open_field(p, end, SLICE_TAG, &next);
    if (p && read_slice(p, next, &slice))
      memcpy(out, slice.data, slice.size);
    out += slice.size;
    p = next;
  }
  return out;
}

size_t st_slices_join(const uint8_t* reply, size_t size, uint8_t* out,
                      size_t* written) {
  const uint8_t *p = reply, *end = reply + size;
  const uint8_t* begin = out;
  const uint8_t *slice, *next = p;
  while ((slice = open_field(p, end, SLICE_TAG, &next))) {
    if (is_packet(slice, next)) {
      size_t field_size = (size_t)(next - slice) - LAST_MARK_SIZE;
      memcpy(out, slice, field_size);
      out += field_size;
    } else {
      size_t packet_size;
      next = find_end(p, end, &packet_size);
      if (!next)
        break;
      out = put_packet(out, p, next, packet_size);
    }
    p = next;
  }
  *written = (size_t)(out - begin);
  return (size_t)(p - reply);
}
