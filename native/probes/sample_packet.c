#include "probes/sample_packet.h"

#include "core/fields.h"
#include "core/wire.h"

enum {
  TRACE_PACKET = 1,
  PERF_SAMPLE_PID = 2,
  PERF_SAMPLE_TID = 3,
  PERF_SAMPLE_CALLSTACK = 4,
  STACK_SAMPLE_TASK = 1,
  TASK_PID = 2,
  TASK_TID = 3,
  STACK_SAMPLE_CALLSTACK = 6,
  STACK_SAMPLE_WEIGHT = 11,
};

static uint8_t* put_perf_sample(uint8_t* to, const struct st_sample* s) {
  to = st_put_u64_field(to, PERF_SAMPLE_PID, s->pid);
  to = st_put_u64_field(to, PERF_SAMPLE_TID, s->tid);
  return st_put_u64_field(to, PERF_SAMPLE_CALLSTACK, s->callstack);
}

static uint8_t* put_stack_sample(uint8_t* to, const struct st_sample* s) {
  uint8_t task[ST_SAMPLE_PACKET_BYTES];
  uint8_t* end = st_put_u64_field(task, TASK_PID, s->pid);
  end = st_put_u64_field(end, TASK_TID, s->tid);
  to = st_put_bytes_field(to, STACK_SAMPLE_TASK, task, (size_t)(end - task));
  to = st_put_u64_field(to, STACK_SAMPLE_CALLSTACK, s->callstack);
  return st_put_u64_field(to, STACK_SAMPLE_WEIGHT, s->weight_ns);
}

uint8_t* st_put_sample_packet(uint8_t* to, const struct st_sample* s) {
  uint8_t sample[ST_SAMPLE_PACKET_BYTES], packet[ST_SAMPLE_PACKET_BYTES];
  bool is_perf = s->form == ST_PERF_SAMPLE;
  uint8_t* end =
      is_perf ? put_perf_sample(sample, s) : put_stack_sample(sample, s);
  uint8_t* at =
      st_put_u64_field(packet, ST_FIELD_TRACE_PACKET_TIMESTAMP, s->delta_us);
  if (s->sequence_id)
    at = st_put_u64_field(at, ST_FIELD_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
                          s->sequence_id);
  at = st_put_bytes_field(at,
                          is_perf ? ST_FIELD_TRACE_PACKET_PERF_SAMPLE
                                  : ST_FIELD_TRACE_PACKET_STACK_SAMPLE,
                          sample, (size_t)(end - sample));
  return st_put_bytes_field(to, TRACE_PACKET, packet, (size_t)(at - packet));
}
