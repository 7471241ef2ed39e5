/* Reads RemoteClockSync: how the clocks of another machine differ from the
 * host's.
 *
 * A relay sends the values of its machine's clocks, and the host adds those of
 * its own.  This happens twice in a row, so that a pair of adjacent snapshots
 * gives two estimates, each of which cancels the time of a message's way:
 *
 *   machine   t1c          t2c
 *   host           t1h          t2h      offset = (t1c + t2c) / 2 - t1h
 *                                        offset = t2c - (t1h + t2h) / 2
 *
 * The offset of a clock is the mean of all estimates.
 *
 * Limits: MAX_CLOCKS clocks.
 * Source: ProtoTraceReader::CalculateClockOffsets of Perfetto v52.
 */
#include <stdlib.h>

#include "clocks.h"
#include "core/fields.h"
#include "messages.h"

enum {
  SYNCED_CLOCKS = 1,
  CLIENT_CLOCKS = 2,
  HOST_CLOCKS = 3,
  MAX_CLOCKS = 16,
};

/* Pairs of snapshots that are further apart were taken for different
 * estimates. */
static const uint64_t kMaxRoundTrip = 30000000000u;

struct pair {
  uint64_t host[MAX_CLOCKS], client[MAX_CLOCKS];
};

struct sync {
  uint64_t ids[MAX_CLOCKS];
  uint64_t sums[MAX_CLOCKS];
  uint32_t counts[MAX_CLOCKS];
  uint32_t size; /* The number of clocks. */
};

/* Returns the number of a clock; MAX_CLOCKS if there are too many. */
static uint32_t number_of(struct sync* s, uint64_t id) {
  uint32_t i = 0;
  while (i < s->size && s->ids[i] != id)
    i++;
  if (i == s->size && i < MAX_CLOCKS)
    s->ids[s->size++] = id;
  return i;
}

static void read_values(struct sync* s, struct st_field snapshot,
                        uint64_t* values) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, snapshot.data, snapshot.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != ST_FIELD_CLOCK_SNAPSHOT_CLOCKS || !f.data)
      continue;
    uint32_t i = number_of(
        s, st_message_find(f, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_CLOCK_ID).value);
    if (i < MAX_CLOCKS)
      values[i] =
          st_message_find(f, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_TIMESTAMP).value;
  }
}

static int64_t half_of_sum(uint64_t a, uint64_t b) {
  return (int64_t)(a + b) / 2;
}

static void estimate(struct sync* s, const struct pair* first,
                     const struct pair* second) {
  uint32_t boot = number_of(s, ST_CLOCK_BOOTTIME);
  if (boot == MAX_CLOCKS ||
      second->client[boot] - first->client[boot] >= kMaxRoundTrip)
    return;
  for (uint32_t i = 0; i < s->size; i++) {
    uint64_t t1h = first->host[i], t1c = first->client[i];
    uint64_t t2h = second->host[i], t2c = second->client[i];
    if (!t1h || !t1c || !t2h || !t2c)
      continue;
    s->sums[i] += (uint64_t)half_of_sum(t1c, t2c) - t1h;
    s->sums[i] += t2c - (uint64_t)half_of_sum(t1h, t2h);
    s->counts[i] += 2;
  }
}

void st_clocks_sync(struct st_clocks* c, struct st_field message) {
  struct sync sync = {0};
  struct pair pairs[2] = {0};
  uint32_t count = 0;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != SYNCED_CLOCKS || !f.data)
      continue;
    struct pair* pair = &pairs[count % 2];
    *pair = (struct pair){0};
    struct st_field client = st_message_find(f, CLIENT_CLOCKS);
    read_values(&sync, st_message_find(f, HOST_CLOCKS), pair->host);
    read_values(&sync, client, pair->client);
    st_clocks_add_quietly(c, 0, client);
    if (count++)
      estimate(&sync, &pairs[count % 2], pair);
  }
  for (uint32_t i = 0; i < sync.size; i++) {
    if (sync.counts[i])
      st_clocks_set_offset(c, sync.ids[i],
                           (int64_t)sync.sums[i] / sync.counts[i]);
  }
}
