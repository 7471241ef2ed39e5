/* Tests of the stack reader, on frames in simulated memory: complete, torn and
 * hostile stacks. */
#include "probes/stack_reader.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "random.h"

enum { BASE = 0x10000, SIZE = 0x40000 };

static uint8_t bytes[SIZE];
static unsigned reads;

/* Reads simulated memory, which starts at the address BASE.  No other address
 * is mapped. */
static bool read_fake(void* self, uint64_t address, void* to, size_t size) {
  (void)self;
  reads++;
  if (address < BASE || address - BASE > SIZE || size > SIZE - (address - BASE))
    return false;
  memcpy(to, bytes + (address - BASE), size);
  return true;
}

static const struct st_memory kMemory = {.read = read_fake};

/* The layout of the structures of CPython 3.12. */
static const struct st_stack_layout kLayout = {
    .thread_previous = 0,
    .thread_next = 8,
    .thread_id = 224,
    .thread_native_id = 144,
    .thread_frame = 56,
    .has_control_frame = true,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_owner = 70,
    .frame_instruction = 56,
    .first_foreign_owner = 3,
    .last_owner = 3,
};

enum {
  THREAD = BASE + 0x100,
  CONTROL = BASE + 0x400,
  STACK = BASE + 0x1000,
  CODE = BASE + 0x800,
};

static void put(uint64_t address, uint64_t word) {
  memcpy(bytes + (address - BASE), &word, sizeof word);
}

static void put_frame(uint64_t address, uint64_t previous, uint64_t code,
                      uint8_t owner) {
  put(address, code);
  put(address + 8, previous);
  bytes[address - BASE + 70] = owner;
}

static void put_thread(uint64_t frame) {
  memset(bytes, 0, sizeof bytes);
  put(THREAD, 0x6666);
  put(THREAD + 8, 0x7777);
  put(THREAD + 56, CONTROL);
  put(THREAD + 144, 4711);
  put(THREAD + 224, 3);
  put(CONTROL, frame);
}

static struct st_stack_frame frames[ST_STACK_MAX_DEPTH];

static int read_stack(void) {
  struct st_stack_thread thread;
  if (!st_stack_read_thread(&kLayout, &kMemory, THREAD, &thread))
    return ST_STACK_TORN;
  return st_stack_read(&kLayout, &kMemory, &thread, frames);
}

static void a_thread_state_is_read(void) {
  put_thread(STACK);
  struct st_stack_thread thread;
  CHECK(st_stack_read_thread(&kLayout, &kMemory, THREAD, &thread));
  CHECK_EQ(thread.previous, 0x6666);
  CHECK_EQ(thread.next, 0x7777);
  CHECK_EQ(thread.id, 3);
  CHECK_EQ(thread.native_id, 4711);
  CHECK_EQ(thread.frame, STACK);
}

static void frames_come_innermost_first(void) {
  put_thread(STACK + 400);
  put_frame(STACK, 0, CODE, 0);
  put_frame(STACK + 200, STACK, CODE + 8, 1);
  put_frame(STACK + 400, STACK + 200, CODE + 16, 0);
  CHECK_EQ(read_stack(), 3);
  CHECK_EQ(frames[0].address, STACK + 400);
  CHECK_EQ(frames[0].code, CODE + 16);
  CHECK_EQ(frames[2].address, STACK);
  CHECK_EQ(frames[2].code, CODE);
}

static void frames_of_the_interpreter_are_left_out(void) {
  put_thread(STACK + 200);
  put_frame(STACK, 0, CODE, 0);
  put_frame(STACK + 104, STACK, 1, 3);
  put_frame(STACK + 200, STACK + 104, CODE + 8, 0);
  CHECK_EQ(read_stack(), 2);
  CHECK_EQ(frames[1].address, STACK);
}

static void tags_of_code_pointers_are_removed(void) {
  struct st_stack_layout layout = kLayout;
  layout.code_tag = 3;
  put_thread(STACK);
  put_frame(STACK, 0, CODE | 1, 0);
  struct st_stack_thread thread;
  CHECK(st_stack_read_thread(&layout, &kMemory, THREAD, &thread));
  CHECK_EQ(st_stack_read(&layout, &kMemory, &thread, frames), 1);
  CHECK_EQ(frames[0].code, CODE);
}

static void reading_ends_after_the_frame_at_stop(void) {
  frames_come_innermost_first();
  struct st_stack_thread thread;
  CHECK(st_stack_read_thread(&kLayout, &kMemory, THREAD, &thread));
  thread.stop = STACK + 200;
  CHECK_EQ(st_stack_read(&kLayout, &kMemory, &thread, frames), 2);
  CHECK_EQ(frames[1].address, STACK + 200);
}

static void a_thread_without_frames_has_an_empty_stack(void) {
  put_thread(0);
  CHECK_EQ(read_stack(), 0);
}

static void fifty_frames_take_few_reads(void) {
  put_thread(STACK + 49 * 120);
  for (unsigned i = 0; i < 50; i++)
    put_frame(STACK + i * 120, i ? STACK + (i - 1) * 120 : 0, CODE, 0);
  reads = 0;
  CHECK_EQ(read_stack(), 50);
  CHECK(reads <= 6);
}

/* The frames of a thread that has called little are at the start of a mapping.
 * One call reads the thread state, one the control frame. */
static void a_few_frames_take_one_read(void) {
  put_thread(BASE + 0xC00 + 9 * 120);
  for (unsigned i = 0; i < 10; i++)
    put_frame(BASE + 0xC00 + i * 120, i ? BASE + 0xC00 + (i - 1) * 120 : 0,
              CODE, 0);
  reads = 0;
  CHECK_EQ(read_stack(), 10);
  CHECK_EQ(reads, 3);
}

/* If the 4 KiB window would begin before the mapping, the part of the page up to
 * the frame is read. */
static void frames_at_the_start_of_a_mapping_are_read(void) {
  put_thread(BASE + 120);
  put_frame(BASE, 0, CODE, 0);
  put_frame(BASE + 120, BASE, CODE, 0);
  reads = 0;
  CHECK_EQ(read_stack(), 2);
  CHECK_EQ(reads, 4);
}

/* The thread's own number may be read without its frame. */
static void the_id_of_a_thread_takes_one_read(void) {
  put_thread(STACK);
  struct st_stack_thread thread;
  reads = 0;
  CHECK(st_stack_read_thread_id(&kLayout, &kMemory, THREAD, &thread));
  CHECK_EQ(reads, 1);
  CHECK_EQ(thread.id, 3);
  CHECK_EQ(thread.native_id, 4711);
  CHECK_EQ(thread.next, 0x7777);
  CHECK_EQ(thread.frame, 0);
}

static void impossible_frames_are_torn(void) {
  put_thread(STACK);
  put_frame(STACK, STACK, CODE, 0); /* A frame that is its own caller. */
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  put_frame(STACK, 0, CODE, 4); /* A frame whose owner is unknown. */
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  /* A frame whose code is no valid pointer. */
  put_frame(STACK, 0, CODE + 1, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  put_frame(STACK, 0, 0, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  put_frame(STACK, 12, CODE, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  /* A frame whose caller is not mapped. */
  put_frame(STACK, (uint64_t)1 << 40, CODE, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
}

static int read_two(const struct st_stack_layout* layout) {
  struct st_stack_thread thread = {.frame = STACK + 200};
  return st_stack_read(layout, &kMemory, &thread, frames);
}

/* A frame whose stack has no top runs: only the innermost frame may. */
static void a_caller_that_runs_is_torn(void) {
  struct st_stack_layout layout = kLayout;
  layout.frame_stack_top = 64;
  layout.has_stack_index = true;
  put_thread(STACK + 200);
  put_frame(STACK, 0, CODE, 0);
  put_frame(STACK + 200, STACK, CODE, 0);
  memset(bytes + (STACK + 200 - BASE) + 64, 0xFF, 4);
  CHECK_EQ(read_two(&layout), 2);
  memset(bytes + (STACK - BASE) + 64, 0xFF, 4);
  CHECK_EQ(read_two(&layout), ST_STACK_TORN);
  CHECK_EQ(read_two(&kLayout), 2); /* The layout does not name the top. */
}

static void a_caller_that_runs_is_torn_if_tops_are_addresses(void) {
  struct st_stack_layout layout = kLayout;
  layout.frame_stack_top = 80;
  put_thread(STACK + 200);
  put_frame(STACK, 0, CODE, 0);
  put_frame(STACK + 200, STACK, CODE, 0);
  CHECK_EQ(read_two(&layout), ST_STACK_TORN);
  put(STACK + 80, STACK + 96);
  CHECK_EQ(read_two(&layout), 2);
}

/* C code that a frame has called does not stop it in this sense. */
static void a_caller_that_c_code_has_called_python_for_may_run(void) {
  struct st_stack_layout layout = kLayout;
  layout.frame_stack_top = 80;
  layout.frame_is_entry = 90;
  put_thread(STACK + 200);
  put_frame(STACK, 0, CODE, 0);
  put_frame(STACK + 200, STACK, CODE, 0);
  bytes[STACK + 200 - BASE + 90] = 1;
  CHECK_EQ(read_two(&layout), 2);
  put_frame(STACK + 104, STACK, CODE, 3);
  put_frame(STACK + 200, STACK + 104, CODE, 0);
  bytes[STACK + 200 - BASE + 90] = 0;
  CHECK_EQ(read_two(&layout), 2);
}

/* A generator that is suspended, like one that has returned, has no caller. */
static void a_generator_without_a_caller_is_torn(void) {
  put_thread(STACK);
  put_frame(STACK, 0, CODE, 1);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  put_thread(STACK + 200);
  put_frame(STACK, 0, CODE, 1);
  put_frame(STACK + 200, STACK, CODE, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
}

static void a_circle_ends(void) {
  put_thread(STACK);
  put_frame(STACK, STACK + 200, CODE, 0);
  put_frame(STACK + 200, STACK, CODE, 0);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
  /* These frames are no Python calls. */
  put_frame(STACK, STACK + 200, CODE, 3);
  put_frame(STACK + 200, STACK, CODE, 3);
  CHECK_EQ(read_stack(), ST_STACK_TORN);
}

static void of_a_deep_stack_the_innermost_frames_are_read(void) {
  enum {
    DEPTH = ST_STACK_MAX_DEPTH + 500,
    INNERMOST = STACK + 96 * (DEPTH - 1)
  };
  put_thread(INNERMOST);
  for (int i = 0; i < DEPTH; i++)
    put_frame(STACK + 96 * (uint64_t)i, i ? STACK + 96 * (uint64_t)(i - 1) : 0,
              CODE + 8 * (uint64_t)i, 0);
  CHECK_EQ(read_stack(), ST_STACK_TOO_DEEP);
  CHECK_EQ(frames[0].address, INNERMOST);
  CHECK_EQ(frames[ST_STACK_MAX_DEPTH - 1].code, CODE + 8 * 500);
}

static void a_thread_state_that_is_gone_is_refused(void) {
  struct st_stack_thread thread;
  CHECK(!st_stack_read_thread(&kLayout, &kMemory, 0, &thread));
  CHECK(!st_stack_read_thread(&kLayout, &kMemory, 0x123456789, &thread));
  put_thread(STACK);
  put(THREAD + 56, 8); /* The control frame of the thread is not mapped. */
  CHECK(!st_stack_read_thread(&kLayout, &kMemory, THREAD, &thread));
}

static void random_memory_does_no_harm(void) {
  uint64_t r = 12345;
  for (int round = 0; round < 2000; round++) {
    put_thread(STACK + 8 * (random_next(&r) % 64));
    for (unsigned i = 0; i < 4096; i += 8) {
      uint64_t word = random_next(&r);
      put(STACK + i, word % 3 ? STACK + word % 4096 / 8 * 8 : word);
    }
    int depth = read_stack();
    CHECK(depth >= ST_STACK_TOO_DEEP && depth <= ST_STACK_MAX_DEPTH);
  }
}

static void instruction_of_a_frame_is_read(void) {
  put_thread(STACK);
  put_frame(STACK, 0, CODE, 0);
  put(STACK + 56, 0x4321);
  CHECK_EQ(read_stack(), 1);
  CHECK_EQ(frames[0].instruction, 0x4321);
  struct st_stack_frame frame = {.address = STACK, .code = CODE};
  uint64_t instruction = 0;
  CHECK(st_stack_read_instruction(&kLayout, &kMemory, &frame, &instruction));
  CHECK_EQ(instruction, 0x4321);
  frame.address = BASE + SIZE;
  CHECK(!st_stack_read_instruction(&kLayout, &kMemory, &frame, &instruction));
}

static void own_memory_is_read_and_what_is_not_there_refused(void) {
  uint64_t word = 99, copy = 0;
  if (!st_own_memory_works()) {
    /* Some emulated systems lack process_vm_readv, and seccomp filters may
     * refuse it. */
    CHECK(errno == ENOSYS || errno == EPERM);
    return;
  }
  CHECK(st_own_memory.read(NULL, (uint64_t)(uintptr_t)&word, &copy, 8));
  CHECK_EQ(copy, 99);
  CHECK(!st_own_memory.read(NULL, 8, &copy, 8));
}

int main(void) {
  RUN(a_thread_state_is_read);
  RUN(frames_come_innermost_first);
  RUN(frames_of_the_interpreter_are_left_out);
  RUN(tags_of_code_pointers_are_removed);
  RUN(reading_ends_after_the_frame_at_stop);
  RUN(a_thread_without_frames_has_an_empty_stack);
  RUN(fifty_frames_take_few_reads);
  RUN(a_few_frames_take_one_read);
  RUN(frames_at_the_start_of_a_mapping_are_read);
  RUN(the_id_of_a_thread_takes_one_read);
  RUN(impossible_frames_are_torn);
  RUN(a_caller_that_runs_is_torn);
  RUN(a_caller_that_runs_is_torn_if_tops_are_addresses);
  RUN(a_caller_that_c_code_has_called_python_for_may_run);
  RUN(a_generator_without_a_caller_is_torn);
  RUN(a_circle_ends);
  RUN(of_a_deep_stack_the_innermost_frames_are_read);
  RUN(a_thread_state_that_is_gone_is_refused);
  RUN(random_memory_does_no_harm);
  RUN(instruction_of_a_frame_is_read);
  RUN(own_memory_is_read_and_what_is_not_there_refused);
  return 0;
}
