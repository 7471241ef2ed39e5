/* Tests of the heap file, of the list of mapped code, and of call chains. */
#include "probes/heap_file.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probes/call_chain.h"

static char folder[] = "/tmp/stretto-heap-XXXXXX";
static struct st_heap_file file;

static const uint64_t kStack[] = {0x1000, 0x2000, 0x3000};

static void stacks_are_numbered_once(void) {
  CHECK(st_heap_file_create(&file, folder, 4096, true));
  CHECK_EQ(st_heap_file_stack(&file, kStack, 3), 2);
  CHECK_EQ(st_heap_file_stack(&file, kStack, 2), 3);
  CHECK_EQ(st_heap_file_stack(&file, kStack, 3), 2);
  CHECK_EQ(file.header->stacks, 3);
  CHECK_EQ(file.header->addresses, 5);
  CHECK(!memcmp(file.header->magic, ST_FILE_MAGIC, 8));
  CHECK_EQ(file.header->pid, (uint64_t)getpid());
  st_heap_file_leave(&file);
}

static void file_grows_until_it_is_full(void) {
  CHECK(st_heap_file_create(&file, folder, 4096, true));
  uint64_t addresses[2] = {1, 2};
  uint32_t number = 0;
  for (uint64_t i = 0; i < ST_FILE_STACKS + 10; i++) {
    addresses[0] = i + 1;
    number = st_heap_file_stack(&file, addresses, 2);
    CHECK(number == ST_FILE_OTHER_STACKS || number == i + 2);
  }
  CHECK_EQ(number, ST_FILE_OTHER_STACKS);
  CHECK_EQ(file.header->stacks, ST_FILE_STACKS - 1);
  CHECK_EQ(file.header->other_stacks, 12);
  struct stat status;
  CHECK(!stat(file.path, &status));
  CHECK((uint64_t)status.st_blocks * 512 < (uint64_t)status.st_size);
  st_heap_file_leave(&file);
}

static void file_that_is_gone_does_not_grow(void) {
  CHECK(st_heap_file_create(&file, folder, 4096, true));
  CHECK(!unlink(file.path));
  uint64_t addresses[64] = {0};
  uint32_t number = 2;
  for (uint64_t i = 0; i < 1000 && number != ST_FILE_OTHER_STACKS; i++) {
    addresses[0] = i + 1;
    number = st_heap_file_stack(&file, addresses, 64);
  }
  CHECK_EQ(number, ST_FILE_OTHER_STACKS);
  st_heap_file_leave(&file);
}

static void changes_are_odd_while_the_totals_change(void) {
  static struct st_heap_profile p = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  CHECK(st_heap_file_create(&file, folder, 4096, true));
  st_heap_profile_init(&p);
  p.heaps[0].stacks = st_heap_file_totals(&file);
  p.heaps[0].capacity = ST_FILE_STACKS;
  uint32_t stack = st_heap_file_stack(&file, kStack, 3);
  st_heap_file_begin(&file);
  CHECK_EQ(file.header->changes % 2, 1);
  CHECK(st_heap_add(&p, 0, stack, 0x7000, 5000));
  st_heap_file_end(&file, &p, 8192);
  CHECK_EQ(file.header->changes, 2);
  CHECK_EQ(file.header->live, 5000);
  CHECK_EQ(file.header->interval, 8192);
  CHECK_EQ(st_heap_file_totals(&file)[stack].allocated.bytes, 5000);
  p.heaps[0].stacks = NULL;
  st_heap_profile_clear(&p);
  st_heap_file_leave(&file);
}

static void limited_or_missing_folder_gets_no_file(void) {
  struct rlimit before, limit;
  CHECK(!getrlimit(RLIMIT_FSIZE, &before));
  limit = before;
  limit.rlim_cur = 1 << 20;
  CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
  CHECK(!st_heap_file_create(&file, folder, 4096, true));
  CHECK(!setrlimit(RLIMIT_FSIZE, &before));
  CHECK(!st_heap_file_create(&file, "/nowhere", 4096, true));
}

/* --- mapped code */

static struct st_mapped_code code;

static void code_of_this_process_is_found(void) {
  char text[1 << 16];
  uint64_t size = 0, here = (uint64_t)(uintptr_t)&code_of_this_process_is_found;
  memset(&code, 0, sizeof code);
  CHECK(!st_mapped_code_has(&code, here));
  st_mapped_code_read(&code, "/proc/self/maps", text, &size, sizeof text);
  CHECK(st_mapped_code_has(&code, here));
  CHECK(!st_mapped_code_has(&code, (uint64_t)(uintptr_t)text));
  text[size] = '\0';
  CHECK(strstr(text, "test_heap_file"));
  uint64_t first = size;
  st_mapped_code_read(&code, "/proc/self/maps", text, &size, sizeof text);
  CHECK_EQ(size, first);
}

static void long_and_damaged_lines_are_left_out(void) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "%s/maps", folder);
  FILE* f = fopen(path, "w");
  CHECK(f);
  fputs("10-20 r-xp 0 a\nnonsense\n20-30 rw-p 0 b\n", f);
  fprintf(f, "30-40 r-xp 0 %5000d\n", 1);
  fclose(f);
  uint64_t size = 0;
  memset(&code, 0, sizeof code);
  st_mapped_code_read(&code, path, text, &size, sizeof text);
  CHECK_EQ(code.count, 1);
  CHECK_EQ(size, 15);
  CHECK(!memcmp(text, "10-20 r-xp 0 a\n", 15));
  size = 0;
  memset(&code, 0, sizeof code);
  st_mapped_code_read(&code, path, text, &size, 14);
  CHECK_EQ(size, 0);
}

static void unknown_code_is_looked_for_ever_less_often(void) {
  int looks = 0;
  memset(&code, 0, sizeof code);
  for (int i = 0; i < 1000; i++)
    looks += st_mapped_code_miss(&code);
  CHECK_EQ(looks, 10);
}

/* --- call chains */

enum { ROOM = 64 };

static uint64_t chain[ROOM];
static uint32_t depth;
static uint64_t marks[4];

static __attribute__((noinline)) void take_chain(void) {
  depth = st_call_chain(__builtin_frame_address(0), chain, ROOM);
  CHECK_EQ(chain[0], (uint64_t)(uintptr_t)__builtin_extract_return_addr(
                         __builtin_return_address(0)));
}

static __attribute__((noinline)) void nest(int levels) {
  marks[levels] = (uint64_t)(uintptr_t)__builtin_extract_return_addr(
      __builtin_return_address(0));
  if (levels)
    nest(levels - 1);
  else
    take_chain();
  __asm__ volatile("" ::: "memory"); /* No tail call. */
}

static void check_nested(void) {
  nest(3);
  CHECK(depth >= 5 && depth <= ROOM);
  for (int i = 0; i < 4; i++)
    CHECK_EQ(chain[i + 1], marks[i]);
}

static void* nested_thread(void* unused) {
  check_nested();
  return unused;
}

static void callers_are_found_in_each_thread(void) {
  pthread_t thread;
  check_nested();
  CHECK(!pthread_create(&thread, NULL, nested_thread, NULL));
  CHECK(!pthread_join(thread, NULL));
}

static void on_signal(int number) {
  (void)number;
  take_chain();
}

static void on_another_stack_there_is_the_caller_only(void) {
  static char other[1 << 16];
  stack_t stack = {.ss_sp = other, .ss_size = sizeof other}, before;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  CHECK(!sigaltstack(&stack, &before));
  CHECK(!sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  CHECK_EQ(depth, 1);
  CHECK(!sigaltstack(&before, NULL));
}

static void remove_folder(void) {
  DIR* all = opendir(folder);
  char path[512];
  for (struct dirent* e; all && (e = readdir(all));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
  }
  if (all)
    closedir(all);
  rmdir(folder);
}

int main(void) {
  CHECK(mkdtemp(folder));
  atexit(remove_folder);
  RUN(stacks_are_numbered_once);
  RUN(file_grows_until_it_is_full);
  RUN(file_that_is_gone_does_not_grow);
  RUN(changes_are_odd_while_the_totals_change);
  RUN(limited_or_missing_folder_gets_no_file);
  RUN(code_of_this_process_is_found);
  RUN(long_and_damaged_lines_are_left_out);
  RUN(unknown_code_is_looked_for_ever_less_often);
  RUN(callers_are_found_in_each_thread);
  st_call_chain_prepare();
  RUN(callers_are_found_in_each_thread);
  RUN(on_another_stack_there_is_the_caller_only);
  return 0;
}
