/* Reads packets in the order of the file: state, clocks, queues of events. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/decoder.h"
#include "core/fields.h"
#include "importer.h"
#include "messages.h"

#define FIELD(name) ST_FIELD_TRACE_PACKET_##name

enum {
  CLEARED = ST_ENUM_TRACE_PACKET_SEQ_INCREMENTAL_STATE_CLEARED,
  EXTENSION_SET = 1, /* Of ExtensionDescriptor. */
  NEEDED = ST_ENUM_TRACE_PACKET_SEQ_NEEDS_INCREMENTAL_STATE,
};

/* Fields that few packets have. */
struct rare_fields {
  struct st_field defaults, interned, compressed, snapshot;
  struct st_field service_event, config, stats, schemas, clock_sync;
};

/* The fields of a packet that the importer reads. */
struct packet {
  uint64_t timestamp, clock;
  uint32_t sequence, flags, machine;
  bool has_timestamp, has_clock, has_sequence, is_cleared, is_after_loss,
      is_first, has_rare;
  struct st_field event, content;
  /* Only if `has_rare`: to clear it takes longer than to read most packets. */
  struct rare_fields rare;
};

static struct rare_fields* rare_fields(struct packet* p) {
  if (!p->has_rare)
    p->rare = (struct rare_fields){0};
  p->has_rare = true;
  return &p->rare;
}

/* Stores a field whose payload has a type of its own. */
static void store_content(struct packet* p, struct st_field f) {
  switch (f.number) {
    case FIELD(TRACE_PACKET_DEFAULTS):
      rare_fields(p)->defaults = f;
      break;
    case FIELD(INTERNED_DATA):
      rare_fields(p)->interned = f;
      break;
    case FIELD(TRACK_EVENT):
      p->event = f;
      break;
    case FIELD(COMPRESSED_PACKETS):
      rare_fields(p)->compressed = f;
      break;
    case FIELD(CLOCK_SNAPSHOT):
      rare_fields(p)->snapshot = f;
      break;
    case FIELD(SERVICE_EVENT):
      rare_fields(p)->service_event = f;
      break;
    case FIELD(TRACE_CONFIG):
      rare_fields(p)->config = f;
      break;
    case FIELD(TRACE_STATS):
      rare_fields(p)->stats = f;
      break;
    case FIELD(EXTENSION_DESCRIPTOR):
      rare_fields(p)->schemas = f;
      break;
    case FIELD(REMOTE_CLOCK_SYNC):
      rare_fields(p)->clock_sync = f;
      break;
    case FIELD(TRACE_UUID):
    case FIELD(TRACE_PROVENANCE):
    case FIELD(SYNCHRONIZATION_MARKER):
    case FIELD(UI_STATE): /* Not needed for queries. */
      break;
    default:
      p->content = f;
  }
}

static void store_number(struct packet* p, struct st_field f) {
  switch (f.number) {
    case FIELD(TIMESTAMP):
      p->timestamp = f.value;
      p->has_timestamp = true;
      break;
    case FIELD(TIMESTAMP_CLOCK_ID):
      p->clock = (uint32_t)f.value;
      p->has_clock = true;
      break;
    case FIELD(TRUSTED_PACKET_SEQUENCE_ID):
      p->sequence = (uint32_t)f.value;
      p->has_sequence = true;
      break;
    case FIELD(MACHINE_ID):
      p->machine = (uint32_t)f.value;
      break;
    case FIELD(SEQUENCE_FLAGS):
      p->flags = (uint32_t)f.value;
      break;
    case FIELD(INCREMENTAL_STATE_CLEARED):
      p->is_cleared = f.value != 0;
      break;
    case FIELD(PREVIOUS_PACKET_DROPPED):
      p->is_after_loss = f.value != 0;
      break;
    case FIELD(FIRST_PACKET_ON_SEQUENCE):
      p->is_first = f.value != 0;
      break;
    default:
      break;
  }
}

static bool decode(struct packet* p, const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  memset(p, 0, offsetof(struct packet, rare));
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.data)
      store_content(p, f);
    else
      store_number(p, f);
  }
  p->is_cleared |= (p->flags & CLEARED) != 0;
  return st_decoder_left(&d) == 0;
}

static void update_defaults(struct st_importer* m, const struct rare_fields* f,
                            uint32_t index) {
  if (f->defaults.data)
    st_sequence_set_defaults(&m->sequences, index, f->defaults.data,
                             f->defaults.size);
  if (!f->interned.data)
    return;
  if (m->sequences.sequences.data[index].is_valid)
    st_sequence_intern(&m->sequences, index, f->interned.data,
                       f->interned.size);
  else
    m->counts.skipped_packets++;
}

/* Applies what a packet says about the state of its sequence. */
static void update_state(struct st_importer* m, const struct packet* p,
                         uint32_t index) {
  struct st_sequence* sequence = &m->sequences.sequences.data[index];
  if (p->is_after_loss && sequence->has_packets) {
    sequence->losses++;
    m->counts.previous_packet_dropped++;
  }
  sequence->has_packets = true;
  if (p->is_first)
    *st_map_at(&m->tracks.with_first, st_tracks_key(&m->tracks, sequence->id)) =
        1;
  if (p->is_cleared)
    st_sequence_clear(&m->sequences, index);
  else if (p->is_after_loss)
    sequence->is_valid = false;
  if (p->has_rare)
    update_defaults(m, &p->rare, index);
}

/* Returns whether the packet's clock is the monotonic one: Chromium's packets
 * don't say so. */
static bool is_monotonic(const struct packet* p, uint64_t clock) {
  return (p->content.number == FIELD(CHROME_EVENTS) ||
          p->content.number == FIELD(CHROME_METADATA)) &&
         (!clock || clock == ST_CLOCK_MONOTONIC);
}

/* Sets *ts to the packet's time.  Returns false if the clock is unknown. */
static bool convert(struct st_importer* m, const struct packet* p,
                    uint32_t index, int64_t* ts) {
  const struct st_sequence* sequence = &m->sequences.sequences.data[index];
  uint64_t clock =
      p->has_clock
          ? p->clock
          : m->sequences.generations.data[sequence->generation].defaults.clock;
  *ts = (int64_t)p->timestamp;
  if (!p->has_timestamp) {
    *ts = m->latest_ts;
    return true;
  }
  if (is_monotonic(p, clock)) {
    st_clocks_convert(&m->machine->clocks, ST_CLOCK_MONOTONIC, *ts, ts);
  } else if (clock) {
    uint64_t id = st_clock_id(&m->machine->clocks, clock, sequence->id);
    int64_t value = st_clocks_absolute(&m->machine->clocks, id, *ts);
    if (!st_clocks_convert(&m->machine->clocks, id, value, ts))
      return false;
  }
  if (*ts > m->latest_ts)
    m->latest_ts = *ts;
  return true;
}

static void queue_packet(struct st_importer* m, int64_t ts, struct st_field f) {
  st_sorter_push(&m->sorter, ST_QUEUE_PACKETS, 0,
                 (struct st_event){.ts = ts,
                                   .data = f.data,
                                   .size = (uint32_t)f.size,
                                   .field = f.number});
}

/* Queues a packet that needs its sequence's state. */
static void queue_with_state(struct st_importer* m, int64_t ts, uint32_t index,
                             struct st_field f) {
  uint32_t generation = m->sequences.sequences.data[index].generation;
  st_sorter_push(&m->sorter, ST_QUEUE_PACKETS, 0,
                 (struct st_event){.ts = ts,
                                   .data = f.data,
                                   .size = (uint32_t)f.size,
                                   .field = f.number,
                                   .generation = generation});
}

/* Sets the pid, tid and time of a sequence whose state is known. */
static void set_thread(struct st_importer* m, struct st_field thread,
                       uint32_t index) {
  struct st_sequence* sequence = &m->sequences.sequences.data[index];
  struct st_field f[ST_FIELD_THREAD_DESCRIPTOR_REFERENCE_TIMESTAMP_US + 1];
  if (!thread.data || !sequence->is_valid)
    return;
  st_message_read(thread, f, sizeof f / sizeof *f);
  sequence->has_thread = true;
  sequence->pid = (uint32_t)f[ST_FIELD_THREAD_DESCRIPTOR_PID].value;
  sequence->tid = (int64_t)f[ST_FIELD_THREAD_DESCRIPTOR_TID].value;
  sequence->thread_time =
      f[ST_FIELD_THREAD_DESCRIPTOR_REFERENCE_TIMESTAMP_US].value * 1000;
}

static void route_content(struct st_importer* m, const struct packet* p,
                          uint32_t index, int64_t ts) {
  switch (p->content.number) {
    case FIELD(TRACK_DESCRIPTOR):
      set_thread(m,
                 st_message_find(p->content, ST_FIELD_TRACK_DESCRIPTOR_THREAD),
                 index);
      if (!st_tracks_register(&m->tracks, p->content.data, p->content.size))
        m->counts.tokenizer_errors++;
      queue_with_state(m, ts, index, p->content);
      break;
    case FIELD(THREAD_DESCRIPTOR):
      if (!m->sequences.sequences.data[index].is_valid) {
        m->counts.skipped_packets++;
        return;
      }
      set_thread(m, p->content, index);
      queue_packet(m, ts, p->content);
      break;
    case FIELD(CHROME_METADATA):
      st_read_chrome_metadata(m, p->content);
      break;
    case FIELD(CHROME_EVENTS):
    case FIELD(PROCESS_DESCRIPTOR):
    case FIELD(PROCESS_TREE):
    case FIELD(PROCESS_STATS):
    case FIELD(SYS_STATS):
    case FIELD(GENERIC_KERNEL_TASK_STATE_EVENT):
    case FIELD(GENERIC_KERNEL_TASK_RENAME_EVENT):
    case FIELD(GENERIC_KERNEL_PROCESS_TREE):
    case FIELD(GENERIC_KERNEL_CPU_FREQ_EVENT):
    case FIELD(TRIGGER):
    case FIELD(CLONE_SNAPSHOT_TRIGGER):
    case ST_FIELD_PACKAGES_LIST:
    case ST_FIELD_DEOBFUSCATION_MAPPING:
    case ST_FIELD_INITIAL_DISPLAY_STATE:
      queue_packet(m, ts, p->content);
      break;
    case FIELD(STREAMING_PROFILE_PACKET):
      ts =
          st_streaming_profile_time(m, index, p->content.data, p->content.size);
      queue_with_state(m, ts, index, p->content);
      break;
    case FIELD(PERF_SAMPLE):
    case FIELD(PROFILE_PACKET):
    case FIELD(MODULE_SYMBOLS):
    case FIELD(SMAPS_PACKET):
    case ST_FIELD_HEAP_GRAPH:
      queue_with_state(m, ts, index, p->content);
      break;
    case FIELD(SYSTEM_INFO):
      st_read_system_info(m, p->content.data, p->content.size);
      break;
    case FIELD(CPU_INFO):
      st_read_cpu_info(m, p->content.data, p->content.size);
      break;
    case FIELD(FTRACE_EVENTS):
      st_read_ftrace(m, m->sequences.sequences.data[index].id, index,
                     p->content.data, p->content.size);
      break;
    case FIELD(FTRACE_STATS):
      st_read_ftrace_stats(m, m->sequences.sequences.data[index].id,
                           p->content.data, p->content.size);
      break;
    default:
      m->counts.unread_packets++;
  }
}

/* Puts the content of a packet into a queue. */
static void route(struct st_importer* m, const struct packet* p, uint32_t index,
                  int64_t ts) {
  if (ts < 0) {
    m->counts.negative_timestamps++;
    return;
  }
  if (p->event.data)
    st_read_event(m, index, p->has_timestamp && p->has_sequence ? &ts : NULL,
                  p->event.data, p->event.size);
  if (p->content.data)
    route_content(m, p, index, ts);
}

static struct st_field kept(struct st_importer* m, struct st_field f) {
  f.data = st_bytes_copy(&m->arena, f.data, f.size);
  return f;
}

/* Reads the packets inside of a compressed packet. */
static void read_compressed(struct st_importer* m, struct st_field f) {
  size_t size = 0;
  uint8_t* data = m->inflate && !m->is_nested
                      ? m->inflate(m->inflate_context, f.data, f.size, &size)
                      : NULL;
  if (!data) {
    m->counts.unread_packets++;
    return;
  }
  /* Kept in the arena, so that a failed allocation does not leak it. */
  const uint8_t* copy = st_bytes_copy(&m->arena, data, size);
  free(data);
  m->is_nested = true;
  struct st_decoder d;
  struct st_field packet;
  st_decoder_init(&d, copy, size);
  while (st_decoder_next(&d, &packet)) {
    if (packet.number == 1 && packet.data)
      st_read_packet(m, packet.data, packet.size);
  }
  m->is_nested = false;
}

/* Sets the source to that of a machine in this file.  Returns false if there are
 * too many. */
static bool use_machine(struct st_importer* m, uint32_t id) {
  if (m->machine->id == id)
    return true;
  uint32_t machine = st_machine_get(&m->machines, id);
  uint32_t source = machine == ST_NO_ROW
                        ? ST_NO_ROW
                        : st_source_get(&m->machines, m->file, machine);
  if (source != ST_NO_ROW)
    st_use_source(m, source);
  return source != ST_NO_ROW;
}

/* Reads what is not part of a sequence.  Returns whether the packet has nothing
 * else, and no time on the sequence's clock. */
static bool read_rare(struct st_importer* m, const struct packet* p) {
  const struct rare_fields* f = &p->rare;
  if (f->compressed.data) {
    read_compressed(m, f->compressed);
    use_machine(m, p->machine); /* The packets may be of others. */
  }
  if (f->snapshot.data &&
      !st_clocks_add_snapshot(&m->machine->clocks, &m->storage, p->sequence,
                              f->snapshot.data, f->snapshot.size))
    m->counts.invalid_snapshots++;
  if (f->clock_sync.data)
    st_clocks_sync(&m->machine->clocks, f->clock_sync);
  if (f->service_event.data)
    st_read_service_event(m, (int64_t)p->timestamp, f->service_event);
  if (f->config.data)
    st_read_config(m, f->config);
  if (f->schemas.data) {
    struct st_field set = st_message_find(f->schemas, EXTENSION_SET);
    st_schemas_add(&m->schemas, set.data, set.size);
  }
  if (f->stats.data) {
    m->trace_stats = kept(m, f->stats);
    st_count_losses(m, f->stats);
  }
  return f->snapshot.data || f->clock_sync.data || f->service_event.data;
}

void st_read_packet(struct st_importer* m, const uint8_t* data, size_t size) {
  struct packet p;
  int64_t ts;
  m->counts.packets++;
  if (!decode(&p, data, size)) {
    m->counts.undecodable_packets++;
    return;
  }
  if (!use_machine(m, p.machine)) {
    m->counts.unread_packets++;
    return;
  }
  uint32_t index = st_sequence_get(&m->sequences, p.sequence);
  update_state(m, &p, index);
  bool is_done = p.has_rare && read_rare(m, &p);
  struct st_sequence* sequence = &m->sequences.sequences.data[index];
  if (p.flags & NEEDED) {
    sequence->needing++;
    if (!sequence->is_valid) {
      sequence->skipped++;
      m->counts.skipped_packets++;
      return;
    }
  }
  if (is_done)
    return;
  /* The time of a packet without content advances its sequence's clock, too. */
  if (convert(m, &p, index, &ts))
    route(m, &p, index, ts);
  else if (p.event.data || p.content.data)
    *ST_PUSH(&m->deferred) = (struct st_event){
        .data = st_bytes_copy(&m->arena, data, size), .size = (uint32_t)size};
}

void st_read_deferred(struct st_importer* m) {
  for (uint32_t i = 0; i < m->deferred.size; i++) {
    const struct st_event* e = &m->deferred.data[i];
    struct packet p;
    int64_t ts;
    decode(&p, e->data, e->size);
    use_machine(m, p.machine);
    uint32_t index = st_sequence_get(&m->sequences, p.sequence);
    if (convert(m, &p, index, &ts))
      route(m, &p, index, ts);
    else
      m->counts.clock_failures++;
  }
  m->deferred.size = 0;
}
