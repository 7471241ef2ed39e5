/* Fuzzes the loading of filter bytecode and its overlay.  Both consist of
 * arbitrary words.  If they are loaded, each field can be queried, field 0 is
 * denied, and each nested message that a rule names exists. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "filter_bytecode.h"
#include "filter_code.h"

/* Makes bytecode with a right checksum from the input.  Mutations would hardly
 * find a right checksum. */
static struct code seal(const uint8_t* data, size_t size) {
  uint32_t words[512];
  size_t count = 0;
  const uint8_t* end = data + size;
  uint64_t word;
  while (count < 512 && (data = st_get_varint(data, end, &word)))
    words[count++] = (uint32_t)word;
  return make_code(words, count);
}

static void query_all(const struct st_filter_bytecode* b) {
  uint32_t messages = (uint32_t)st_filter_bytecode_messages(b);
  for (uint32_t message = 0; message <= messages; message++) {
    CHECK_EQ(st_filter_bytecode_query(b, message, 0), ST_FILTER_DENIED);
    for (uint32_t field = 1; field < UINT32_MAX / 2; field += field / 16 + 1) {
      uint32_t rule = st_filter_bytecode_query(b, message, field);
      CHECK(rule == ST_FILTER_DENIED || rule >= ST_FILTER_ALLOWED);
      if (st_filter_is_nested(rule))
        CHECK(st_filter_nested_message(rule) < messages);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_filter_bytecode b;
  if (!st_filter_bytecode_load(&b, data, size, NULL, 0))
    st_filter_bytecode_free(&b);
  if (!size)
    return 0;
  size_t code_size = data[0] < size ? data[0] : size - 1;
  struct code code = seal(data + 1, code_size);
  struct code overlay = seal(data + 1 + code_size, size - 1 - code_size);
  const char* error = st_filter_bytecode_load(&b, code.data, code.size,
                                              overlay.data, overlay.size);
  if (error) {
    CHECK(strlen(error) > 10);
    CHECK(!b.words.data && !b.offsets.data);
    return 0;
  }
  query_all(&b);
  st_filter_bytecode_free(&b);
  return 0;
}
