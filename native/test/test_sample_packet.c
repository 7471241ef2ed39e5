/* Tests of the packets of samples: both forms, byte for byte. */
#include "probes/sample_packet.h"

#include <string.h>

#include "check.h"

static void check_packet(const struct st_sample* sample, const char* expected,
                         size_t size) {
  uint8_t packet[ST_SAMPLE_PACKET_BYTES];
  uint8_t* end = st_put_sample_packet(packet, sample);
  CHECK_EQ(end - packet, (long)size);
  CHECK(!memcmp(packet, expected, size));
}

static void perf_sample_has_the_ids_and_the_stack(void) {
  struct st_sample sample = {.form = ST_PERF_SAMPLE,
                             .delta_us = 5,
                             .sequence_id = 9,
                             .pid = 7,
                             .tid = 8,
                             .callstack = 3,
                             .weight_ns = 1000};
  static const char expected[] =
      "\x0A\x0D\x40\x05\x50\x09\x92\x04\x06\x10\x07\x18\x08\x20\x03";
  check_packet(&sample, expected, sizeof expected - 1);
}

static void stack_sample_has_a_task_and_a_weight(void) {
  struct st_sample sample = {.form = ST_STACK_SAMPLE,
                             .delta_us = 5,
                             .pid = 7,
                             .tid = 8,
                             .callstack = 3,
                             .weight_ns = 1000};
  static const char expected[] =
      "\x0A\x10\x40\x05\xBA\x08\x0B"
      "\x0A\x04\x10\x07\x18\x08\x30\x03\x58\xE8\x07";
  check_packet(&sample, expected, sizeof expected - 1);
}

static void largest_numbers_fit(void) {
  for (int form = ST_PERF_SAMPLE; form <= ST_STACK_SAMPLE; form++) {
    uint8_t packet[ST_SAMPLE_PACKET_BYTES];
    struct st_sample sample = {(enum st_sample_form)form,
                               UINT64_MAX,
                               UINT32_MAX,
                               UINT32_MAX,
                               UINT32_MAX,
                               UINT32_MAX,
                               UINT64_MAX};
    uint8_t* end = st_put_sample_packet(packet, &sample);
    CHECK(end - packet <= ST_SAMPLE_PACKET_BYTES);
  }
}

int main(void) {
  RUN(perf_sample_has_the_ids_and_the_stack);
  RUN(stack_sample_has_a_task_and_a_weight);
  RUN(largest_numbers_fit);
  return 0;
}
