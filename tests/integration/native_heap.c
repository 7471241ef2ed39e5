/* A program with known allocations, for test_record_native_heap.py.
 *
 *   native_heap WAY_TO_END       return, _exit, kill, exec, exec true, exec sleep, fork
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { MB = 1 << 20, COUNT = 40000 };

static void* kept[COUNT];
static int count;

static NOINLINE void* keep(void* block) {
  if (!block)
    abort();
  return kept[count++] = block;
}

/* 8, 4 and 2 MB that stay. */
NOINLINE void hold_much(void) {
  for (int i = 0; i < 8 * MB / 1000; i++)
    keep(malloc(1000));
}

NOINLINE void hold_less(void) {
  for (int i = 0; i < 4 * MB / 2000; i++)
    keep(calloc(2, 1000));
}

NOINLINE void hold_aligned(void) {
  void* block;
  for (int i = 0; i < MB / 2048; i++) {
    if (posix_memalign(&block, 64, 2048) || (uintptr_t)block % 64)
      abort();
    keep(block);
    keep(aligned_alloc(64, 2048));
  }
}

/* 20 MB that are free again. */
NOINLINE void churn(void) {
  for (int i = 0; i < 20 * MB / 1000; i++) {
    char* block = malloc(500);
    block[0] = 7;
    block = realloc(block, 1000);
    if (!block || block[0] != 7)
      abort();
    free(block);
  }
}

/* One that grows to 3 MB. */
NOINLINE void grow(void) {
  char* block = NULL;
  for (size_t size = 1000; size <= 3 * MB; size += 50000)
    block = realloc(block, size);
  keep(realloc(block, 3 * MB));
}

static void* hold_in_thread(void* unused) {
  (void)unused;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  for (int i = 0; i < MB / 1000; i++) {
    void* block = malloc(1000);
    pthread_mutex_lock(&mutex);
    keep(block);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

/* 4 MB in four threads that end. */
NOINLINE static void hold_in_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    if (pthread_create(&threads[i], NULL, hold_in_thread, NULL))
      abort();
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
}

static void check_results(void) {
  errno = 77;
  free(malloc(100000));
  if (errno != 77)
    abort();
  volatile size_t too_large = SIZE_MAX;
  if (malloc(too_large / 2) || errno != ENOMEM)
    abort();
  if (calloc(too_large, 2) || reallocarray(NULL, too_large, 2))
    abort();
  char* block = malloc(200000);
  if (realloc(block, too_large / 2))
    abort();
  memset(block, 1, malloc_usable_size(block));
  free(block);
  free(NULL);
  void* library = dlopen("libm.so.6", RTLD_NOW);
  if (library)
    dlclose(library);
}

static volatile sig_atomic_t signals;

static void on_alarm(int number) {
  (void)number;
  signals++;
}

/* Signals that interrupt samples. */
NOINLINE static void churn_with_signals(void) {
  signal(SIGPROF, on_alarm);
  for (int i = 0; i < 2000; i++) {
    void* block = malloc(100000);
    if (i % 10 == 0)
      raise(SIGPROF);
    free(block);
  }
  printf("%d signals\n", (int)signals);
}

NOINLINE static void hold_in_child(void) {
  fflush(stdout);
  if (!fork()) {
    for (int i = 0; i < 6 * MB / 1000; i++)
      keep(malloc(1000));
    _exit(0);
  }
  wait(NULL);
}

int main(int argc, char** argv) {
  const char* end = argc > 1 ? argv[1] : "return";
  check_results();
  hold_much();
  hold_less();
  hold_aligned();
  churn();
  grow();
  hold_in_threads();
  churn_with_signals();
  printf("%d blocks\n", count);
  if (!strcmp(end, "fork"))
    hold_in_child();
  fflush(stdout);
  if (!strcmp(end, "exec"))
    execl(argv[0], argv[0], "_exit", (char*)NULL);
  if (!strcmp(end, "exec true"))
    execlp("true", "true", (char*)NULL);
  if (!strcmp(end, "exec sleep"))
    execlp("sleep", "sleep", "1.5", (char*)NULL);
  if (!strcmp(end, "_exit"))
    _exit(5);
  if (!strcmp(end, "kill"))
    kill(getpid(), SIGKILL);
  return 3;
}
