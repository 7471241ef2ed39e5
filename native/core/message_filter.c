#include "message_filter.h"

#include <string.h>

#include "wire.h"

/* The encoded tag of the delimited field Trace.packet. */
enum { PACKET_TAG = 0x0A };

/* A message whose fields are being filtered. */
struct frame {
  /* The end of the message in the input. */
  const uint8_t* end;
  uint32_t message;
  uint32_t length_width;
  /* The position of the message's length in the output; NULL for the outermost
   * message. */
  uint8_t* length;
};

struct run {
  const struct st_message_filter* filter;
  const uint8_t* in;
  uint8_t* out;
  bool stopped;
  size_t depth;
  struct frame frames[ST_FILTER_MAX_DEPTH];
};

/* Decodes a varint.  Varints of one byte are tested first, because most varints
 * have one byte. */
static inline const uint8_t* get_varint(const uint8_t* p, const uint8_t* end,
                                        uint64_t* out) {
  if (p == end || *p >= 0x80)
    return st_get_varint(p, end, out);
  *out = *p;
  return p + 1;
}

static void put_redundant_varint(uint8_t* p, uint64_t value, uint32_t width) {
  for (; width > 1; width--, value >>= 7)
    *p++ = (uint8_t)(value | 0x80);
  *p = (uint8_t)(value & 0x7F);
}

static bool enter(struct run* run, uint32_t message, size_t size,
                  uint8_t* length) {
  if (run->depth == ST_FILTER_MAX_DEPTH)
    return false;
  run->frames[run->depth++] = (struct frame){
      .end = run->in + size,
      .message = message,
      .length = length,
      .length_width = (uint32_t)(run->out - length),
  };
  return true;
}

static void leave(struct run* run) {
  const struct frame* frame = &run->frames[--run->depth];
  if (!run->depth)
    return;
  const uint8_t* start = frame->length + frame->length_width;
  put_redundant_varint(frame->length, (uint64_t)(run->out - start),
                       frame->length_width);
}

static void put_fixed(struct run* run, uint32_t tag, const uint8_t* value,
                      size_t size) {
  run->out = st_put_varint(run->out, tag);
  memcpy(run->out, value, size);
  run->out += size;
}

static bool filter_varint(struct run* run, uint32_t tag, uint32_t rule) {
  uint64_t value;
  const uint8_t* end = run->frames[run->depth - 1].end;
  run->in = get_varint(run->in, end, &value);
  if (!run->in)
    return false;
  if (rule == ST_FILTER_RULE_SIMPLE)
    run->out = st_put_varint(st_put_varint(run->out, tag), value);
  return true;
}

static bool filter_fixed(struct run* run, uint32_t tag, uint32_t rule,
                         size_t size) {
  const uint8_t* end = run->frames[run->depth - 1].end;
  if ((size_t)(end - run->in) < size)
    return false;
  if (rule == ST_FILTER_RULE_SIMPLE)
    put_fixed(run, tag, run->in, size);
  run->in += size;
  return true;
}

static bool rewrite(struct run* run, size_t size, uint32_t rule) {
  const struct st_message_filter* f = run->filter;
  if (!f->string_filter || !size || !st_filter_is_string(rule))
    return true;
  run->stopped = !f->string_filter(f->context, run->out, size,
                                   st_filter_semantic_type(rule));
  return !run->stopped;
}

static bool filter_delimited(struct run* run, uint32_t tag, uint32_t rule) {
  uint64_t size;
  const uint8_t* end = run->frames[run->depth - 1].end;
  run->in = get_varint(run->in, end, &size);
  if (!run->in || size > (size_t)(end - run->in) || size > ST_MAX_MESSAGE_SIZE)
    return false;
  if (rule == ST_FILTER_DENIED) {
    run->in += size;
    return true;
  }
  uint8_t* length = st_put_varint(run->out, tag);
  run->out = st_put_varint(length, size);
  if (st_filter_is_nested(rule) && size)
    return enter(run, st_filter_nested_message(rule), size, length);
  memcpy(run->out, run->in, size);
  if (!rewrite(run, size, rule))
    return false;
  run->in += size;
  run->out += size;
  return true;
}

static bool filter_field(struct run* run) {
  const struct frame* frame = &run->frames[run->depth - 1];
  uint64_t tag;
  run->in = get_varint(run->in, frame->end, &tag);
  if (!run->in || tag > UINT32_MAX || !(tag >> 3))
    return false;
  uint32_t rule = st_filter_bytecode_query(
      run->filter->bytecode, frame->message, (uint32_t)(tag >> 3));
  switch (tag & 7) {
    case ST_WIRE_VARINT:
      return filter_varint(run, (uint32_t)tag, rule);
    case ST_WIRE_FIXED64:
      return filter_fixed(run, (uint32_t)tag, rule, 8);
    case ST_WIRE_FIXED32:
      return filter_fixed(run, (uint32_t)tag, rule, 4);
    case ST_WIRE_DELIMITED:
      return filter_delimited(run, (uint32_t)tag, rule);
    default:
      return false;
  }
}

bool st_message_filter_set_root(struct st_message_filter* f,
                                const uint32_t* fields, size_t count) {
  uint32_t root = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t rule = st_filter_bytecode_query(f->bytecode, root, fields[i]);
    if (!st_filter_is_nested(rule))
      return false;
    root = st_filter_nested_message(rule);
  }
  f->root = root;
  return true;
}

enum st_filter_result st_message_filter_run(const struct st_message_filter* f,
                                            const uint8_t* data, size_t size,
                                            uint8_t* out, size_t* out_size) {
  /* The struct is not initialised, because each entry is written before it is
   * read. */
  struct run run;
  run.filter = f;
  run.in = data;
  run.out = out;
  run.stopped = false;
  run.depth = 0;
  *out_size = 0;
  enter(&run, f->root, size, out);
  while (run.depth) {
    if (run.in == run.frames[run.depth - 1].end)
      leave(&run);
    else if (!filter_field(&run))
      return run.stopped ? ST_FILTER_STOPPED : ST_FILTER_MALFORMED;
  }
  *out_size = (size_t)(run.out - out);
  return ST_FILTER_DONE;
}

/* Returns the start of the payload of the packet at p.  Returns NULL if there
 * is no complete packet at p. */
static const uint8_t* open_packet(const uint8_t* p, const uint8_t* end,
                                  size_t* size) {
  uint64_t value;
  if (*p != PACKET_TAG)
    return NULL;
  p = get_varint(p + 1, end, &value);
  if (!p || value > (size_t)(end - p))
    return NULL;
  *size = (size_t)value;
  return p;
}

/* Writes the tag and length of a packet at `out`, and moves the packet's
 * payload, which begins `room` bytes after `out`, directly behind them. */
static uint8_t* close_packet(uint8_t* out, size_t room, size_t size) {
  const uint8_t* packet = out + room;
  *out++ = PACKET_TAG;
  out = st_put_varint(out, size);
  if (out != packet)
    memmove(out, packet, size);
  return out + size;
}

bool st_message_filter_run_trace(const struct st_message_filter* f,
                                 const uint8_t* data, size_t size, uint8_t* out,
                                 struct st_filter_counts* counts) {
  const uint8_t *p = data, *end = data + size;
  uint8_t* start = out;
  *counts = (struct st_filter_counts){0};
  while (p < end) {
    size_t packet_size, filtered;
    p = open_packet(p, end, &packet_size);
    if (!p)
      return false;
    size_t room = 1 + st_varint_size(packet_size);
    enum st_filter_result result =
        st_message_filter_run(f, p, packet_size, out + room, &filtered);
    if (result == ST_FILTER_STOPPED)
      return false;
    counts->packets++;
    counts->malformed += result == ST_FILTER_MALFORMED;
    counts->packet_bytes += packet_size;
    counts->filtered_bytes += filtered;
    out = close_packet(out, room, filtered);
    p += packet_size;
  }
  counts->out_size = (size_t)(out - start);
  return true;
}
