#include "hooks/shared_totals.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_NAME = 400, MAX_FILE = 1000 };

struct totals {
  _Atomic uint64_t numbers[ST_TOTALS_NUMBERS];
  struct st_function_totals functions[ST_TOTALS_FUNCTIONS];
  char text[ST_TOTALS_TEXT];
};

static struct totals* _Atomic totals;
static uint32_t text_used;

static struct totals* mapped(void) {
  return atomic_load_explicit(&totals, memory_order_acquire);
}

/* In the child of a fork: the memory belongs to the parent. */
static void forget(void) {
  struct totals* t = atomic_exchange(&totals, NULL);
  if (t)
    munmap(t, sizeof *t);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, forget);
}

static bool map(int flags, int fd) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  void* t = mmap(NULL, sizeof(struct totals), PROT_READ | PROT_WRITE,
                 MAP_SHARED | flags, fd, 0);
  if (t == MAP_FAILED)
    return false;
  text_used = 0;
  atomic_store_explicit(&totals, t, memory_order_release);
  return true;
}

/* Beyond the limit, the kernel would send a signal to the program. */
static bool may_be_as_large(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur >= sizeof(struct totals);
}

int st_totals_share(void) {
  if (mapped() || !may_be_as_large())
    return -1;
  int fd = memfd_create("stretto-totals", MFD_CLOEXEC);
  if (fd < 0)
    return -1;
  if (ftruncate(fd, sizeof(struct totals)) == 0 && map(0, fd))
    return fd;
  close(fd);
  return -1;
}

void st_totals_start(void) {
  struct totals* t = mapped();
  text_used = 0;
  if (t)
    memset((void*)t->numbers, 0, sizeof t->numbers);
  else
    map(MAP_ANONYMOUS, -1);
}

void st_totals_set(enum st_totals_number number, uint64_t value) {
  struct totals* t = mapped();
  if (t)
    atomic_store_explicit(&t->numbers[number], value, memory_order_relaxed);
}

/* Appends a text, and cuts it off at `most` bytes.  There is room for it. */
static void put_text(struct totals* t, const char* text, size_t most) {
  size_t size = strnlen(text, most);
  memcpy(t->text + text_used, text, size);
  t->text[text_used + size] = 0;
  text_used += (uint32_t)size + 1;
}

uint32_t st_totals_add(const char* name, const char* file, uint64_t line) {
  struct totals* t = mapped();
  uint64_t count = t ? atomic_load(&t->numbers[ST_TOTALS_COUNT]) : 0;
  if (!t || count == ST_TOTALS_FUNCTIONS ||
      text_used + MAX_NAME + MAX_FILE + 2 > ST_TOTALS_TEXT)
    return 0;
  t->functions[count] =
      (struct st_function_totals){.line = line, .text = text_used};
  put_text(t, name, MAX_NAME);
  put_text(t, file, MAX_FILE);
  atomic_store_explicit(&t->numbers[ST_TOTALS_COUNT], count + 1,
                        memory_order_release);
  return (uint32_t)count + 1;
}

struct st_function_totals* st_totals_at(uint32_t number) {
  struct totals* t = number ? mapped() : NULL;
  return t ? &t->functions[number - 1] : NULL;
}
