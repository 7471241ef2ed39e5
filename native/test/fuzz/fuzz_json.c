/* Fuzzes the import of JSON in two ways: the input is a trace in two pieces,
 * and the input chooses the members of events.  References between rows must be
 * valid. */
#include <string.h>
#define CHECK_ABORTS
#include "check_rows.h"

static void feed(struct st_importer* m, const char* text, size_t size) {
  CHECK(st_importer_feed(m, text, size));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const kParts[] = {
      "\"ph\":\"B\"",
      "\"ph\":\"E\"",
      "\"ph\":\"X\"",
      "\"ph\":\"i\"",
      "\"ph\":\"b\"",
      "\"ph\":\"e\"",
      "\"ph\":\"n\"",
      "\"ph\":\"C\"",
      "\"ph\":\"s\"",
      "\"ph\":\"t\"",
      "\"ph\":\"f\"",
      "\"ph\":\"M\"",
      "\"ts\":1",
      "\"ts\":2.5",
      "\"ts\":\"3\"",
      "\"ts\":9e15",
      "\"dur\":1",
      "\"dur\":4",
      "\"dur\":-1",
      "\"tts\":5",
      "\"pid\":1",
      "\"pid\":\"p\"",
      "\"tid\":0",
      "\"tid\":2",
      "\"id\":1",
      "\"id\":\"0x1\"",
      "\"id2\":{\"local\":2}",
      "\"bind_id\":1",
      "\"flow_in\":true",
      "\"flow_out\":true",
      "\"bp\":\"e\"",
      "\"s\":\"p\"",
      "\"s\":\"g\"",
      "\"name\":\"n\"",
      "\"name\":\"process_name\"",
      "\"cat\":\"c\"",
      "\"args\":{\"name\":\"x\",\"a\":[1,[2,{}]]}",
      "\"args\":{\"v\":\"1.5\"}"};
  struct st_importer* m = st_importer_new();
  size_t half = size / 2;
  feed(m, "[{", 2);
  feed(m, (const char*)data, half);
  feed(m, (const char*)data + half, size - half);
  finish_checked(m);
  m = st_importer_new();
  feed(m, "[{", 2);
  for (size_t i = 0; i < size; i++) {
    uint8_t byte = data[i];
    const char* part = kParts[byte % (sizeof kParts / sizeof *kParts)];
    if (byte >= 200)
      feed(m, "},{", 3);
    feed(m, part, strlen(part));
    feed(m, ",", 1);
  }
  feed(m, "}]", 2);
  finish_checked(m);
  return 0;
}
