/* Fuzzes the import of FXT in two ways: the input is a trace in two pieces, and
 * the input chooses the fields of records.  References between rows must be
 * valid. */
#define CHECK_ABORTS
#include <string.h>

#include "check_rows.h"

enum { MAX_WORDS = 12 };

static const uint64_t kMagic = UINT64_C(0x0016547846040010);

static struct st_importer* begun(void) {
  struct st_importer* m = st_importer_new();
  CHECK(st_importer_feed(m, &kMagic, sizeof kMagic));
  return m;
}

/* Feeds a record whose size fits its words, which are made of the input: most of
 * its bytes are small numbers. */
static void feed_record(struct st_importer* m, const uint8_t* data,
                        size_t size) {
  uint64_t words[MAX_WORDS] = {0};
  uint64_t count = 1 + size % MAX_WORDS;
  for (size_t i = 0; i < size; i++)
    words[i / 8 % MAX_WORDS] |= (uint64_t)(data[i] & 0x8F) << i % 8 * 8;
  words[0] = (words[0] & ~UINT64_C(0xFFF0)) | count << 4;
  CHECK(st_importer_feed(m, words, (size_t)count * 8));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_importer* m = begun();
  size_t half = size / 2;
  CHECK(st_importer_feed(m, data, half));
  CHECK(st_importer_feed(m, data + half, size - half));
  finish_checked(m);
  m = begun();
  while (size) {
    size_t count = 1 + data[0] % (MAX_WORDS * 8);
    count = count < size ? count : size;
    feed_record(m, data, count);
    data += count;
    size -= count;
  }
  finish_checked(m);
  return 0;
}
