// The peer: libprotobuf with an arena that has its first block at hand, and an array to
// serialize to, so that no message costs an allocation.
#include <google/protobuf/arena.h>

#include "_protozero.h"
#include "_protozero.pb.h"

namespace {

char first_block[8192];
uint8_t out[8192];

google::protobuf::Arena& FreshArena() {
  static google::protobuf::Arena* arena = [] {
    google::protobuf::ArenaOptions options;
    options.initial_block = first_block;
    options.initial_block_size = sizeof first_block;
    return new google::protobuf::Arena(options);
  }();
  arena->Reset();
  return *arena;
}

template <typename M>
void Fill(M* message, const values* v) {
  message->set_int32(v->int32);
  message->set_uint32(v->uint32);
  message->set_int64(v->int64);
  message->set_uint64(v->uint64);
  message->set_text(kText, TEXT_SIZE);
}

template <typename M>
size_t Serialize(const M& message) {
  size_t size = message.ByteSizeLong();
  message.SerializeWithCachedSizesToArray(out);
  asm volatile("" ::: "memory");
  return size;
}

size_t WriteSimple(const values* v) {
  auto* message = google::protobuf::Arena::CreateMessage<bench::Simple>(&FreshArena());
  Fill(message, v);
  return Serialize(*message);
}

size_t WriteNested(const values* v) {
  auto* root = google::protobuf::Arena::CreateMessage<bench::Nested>(&FreshArena());
  bench::Nested* message = root;
  for (int level = 1; level < NESTED_LEVELS; level++) {
    Fill(message, v);
    message = message->mutable_nested();
  }
  Fill(message, v);
  return Serialize(*root);
}

}  // namespace

int main() {
  make_values();
  printf("{");
  measure("simple", WriteSimple, ", ");
  measure("nested", WriteNested, "}\n");
}
