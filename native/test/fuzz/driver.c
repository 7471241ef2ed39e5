/* Standalone fuzz driver, for compilers without libFuzzer.
 *
 *   fuzz_x [-runs=N] [-seed=N] [-max_len=N] [corpus file]...
 *
 * It runs each corpus file unchanged, then N inputs made by mutation from these
 * files and from a few built-in seeds.  It measures no coverage, so it does not
 * replace libFuzzer.
 *
 * The runs happen in a child process.  The current input is in memory shared
 * with the parent.  If the child ends abnormally (signal, sanitizer, exit), the
 * parent writes that input to ./crash-input and exits with status 1.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { MAX_SEEDS = 4096, MAX_MUTATIONS = 8 };
static const char kCrashPath[] = "crash-input";

struct input {
  uint8_t* data;
  size_t size;
};

/* The memory that the child and the parent process share. */
struct shared {
  bool finished;
  uint64_t executions;
  size_t size;
  uint8_t data[];
};

static struct input seeds[MAX_SEEDS];
static size_t seed_count;
static size_t max_len = 4096;
static uint64_t runs = 10000;
static uint64_t state = 1;
static struct shared* shared;

static size_t below(size_t limit) {
  return limit ? (size_t)random_below(&state, limit) : 0;
}

static size_t at_most(size_t a, size_t b) {
  return a < b ? a : b;
}

static _Noreturn void die(const char* what) {
  perror(what);
  exit(2);
}

static void add_seed(const void* data, size_t size) {
  if (seed_count == MAX_SEEDS)
    return;
  struct input seed = {malloc(max_len), at_most(size, max_len)};
  if (!seed.data)
    die("malloc");
  memcpy(seed.data, data, seed.size);
  seeds[seed_count++] = seed;
}

static void add_built_in_seeds(void) {
  static const char kMessage[] = "\x08\x01\x12\x02hi\x1a\x02\x08\x05\x25\1\2\3";
  uint8_t bytes[2048] = {0};
  add_seed(bytes, 0);
  add_seed(bytes, 64);
  memset(bytes, 0xFF, sizeof bytes);
  add_seed(bytes, 64);
  add_seed(kMessage, sizeof kMessage);
  for (size_t size = 16; size <= sizeof bytes; size *= 2) {
    random_fill(&state, bytes, size);
    add_seed(bytes, size);
  }
}

static void add_file(const char* path) {
  FILE* f = fopen(path, "rb");
  if (!f)
    die(path);
  uint8_t* bytes = malloc(max_len);
  if (!bytes)
    die("malloc");
  add_seed(bytes, fread(bytes, 1, max_len, f));
  free(bytes);
  fclose(f);
}

/* From here on: mutations of an input, whose buffer has max_len bytes. */

static void flip_bit(struct input* in) {
  if (in->size)
    in->data[below(in->size)] ^= (uint8_t)(1u << below(8));
}

static void set_byte(struct input* in) {
  static const uint8_t kEdges[] = {0, 1, 0x7F, 0x80, 0xFE, 0xFF};
  if (!in->size)
    return;
  in->data[below(in->size)] =
      below(2) ? kEdges[below(sizeof kEdges)] : (uint8_t)below(256);
}

static void erase(struct input* in) {
  size_t from = below(in->size);
  size_t n = below(in->size - from + 1);
  memmove(in->data + from, in->data + from + n, in->size - from - n);
  in->size -= n;
}

/* Inserts a copy of n bytes into the input.  The n bytes at `bytes` may be a
 * part of `in`. */
static void insert_copy(struct input* in, const uint8_t* bytes, size_t n) {
  n = at_most(n, max_len - in->size);
  if (n == 0)
    return;
  uint8_t* copy = malloc(n);
  if (!copy)
    die("malloc");
  memcpy(copy, bytes, n);
  size_t at = below(in->size + 1);
  memmove(in->data + at + n, in->data + at, in->size - at);
  memcpy(in->data + at, copy, n);
  in->size += n;
  free(copy);
}

static void insert_random(struct input* in) {
  uint8_t bytes[16];
  random_fill(&state, bytes, sizeof bytes);
  insert_copy(in, bytes, 1 + below(sizeof bytes));
}

static void insert_part(struct input* in, const struct input* from) {
  if (!from->size)
    return;
  size_t start = below(from->size);
  insert_copy(in, from->data + start, 1 + below(from->size - start));
}

static void mutate_once(struct input* in) {
  switch (below(7)) {
    case 0:
      erase(in);
      break;
    case 1:
      insert_random(in);
      break;
    case 2:
      insert_part(in, in);
      break;
    case 3:
      insert_part(in, &seeds[below(seed_count)]);
      break;
    case 4:
      flip_bit(in);
      break;
    default:
      set_byte(in);
      break;
  }
}

/* Copies the input to a heap block of its exact size, so that ASan detects
 * reads after its end.  Passes the copy to the fuzz target. */
static void run(const uint8_t* data, size_t size) {
  shared->size = size;
  memcpy(shared->data, data, size);
  shared->executions++;
  uint8_t* copy = malloc(size);
  if (!copy && size)
    die("malloc");
  if (size)
    memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void run_all(void) {
  for (size_t i = 0; i < seed_count; i++)
    run(seeds[i].data, seeds[i].size);
  struct input in = {malloc(max_len), 0};
  if (!in.data)
    die("malloc");
  for (uint64_t i = 0; i < runs; i++) {
    const struct input* seed = &seeds[below(seed_count)];
    in.size = seed->size;
    memcpy(in.data, seed->data, seed->size);
    for (size_t n = 1 + below(MAX_MUTATIONS); n > 0; n--)
      mutate_once(&in);
    run(in.data, in.size);
  }
  free(in.data);
  for (size_t i = 0; i < seed_count; i++)
    free(seeds[i].data);
}

static void save_crash(void) {
  FILE* f = fopen(kCrashPath, "wb");
  if (!f)
    die(kCrashPath);
  fwrite(shared->data, 1, shared->size, f);
  fclose(f);
  fprintf(stderr, "crash after %llu runs, input of %zu bytes in ./%s\n",
          (unsigned long long)shared->executions, shared->size, kCrashPath);
}

static void run_in_child(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child < 0)
    die("fork");
  if (child == 0) {
    run_all();
    shared->finished = true;
    exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child)
    die("waitpid");
  if (status == 0 && shared->finished)
    return;
  save_crash();
  exit(1);
}

static bool parse_option(const char* arg) {
  unsigned long long n;
  if (sscanf(arg, "-runs=%llu", &n) == 1)
    runs = n;
  else if (sscanf(arg, "-seed=%llu", &n) == 1)
    state = n ? n : 1;
  else if (sscanf(arg, "-max_len=%llu", &n) == 1 && n > 0)
    max_len = (size_t)n;
  else
    return false;
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] == '-' && !parse_option(argv[i])) {
      fprintf(stderr, "%s: unknown option %s (-runs= -seed= -max_len=)\n",
              argv[0], argv[i]);
      return 2;
    }
  }
  shared = mmap(NULL, sizeof *shared + max_len, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    die("mmap");
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-')
      add_file(argv[i]);
  }
  add_built_in_seeds();
  double start = now();
  run_in_child();
  printf("%llu runs, %.0f executions/s\n",
         (unsigned long long)shared->executions,
         (double)shared->executions / (now() - start));
  for (size_t i = 0; i < seed_count; i++)
    free(seeds[i].data);
  return 0;
}
