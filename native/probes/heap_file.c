#include "probes/heap_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* How much of an area is written at once. */
enum { PIECE = 1 << 14 };

struct stack {
  uint32_t first, depth;
};

static const struct area {
  uint64_t offset, size;
} kAreas[ST_AREAS + 1] = {
    [ST_AREA_CODE] = {ST_FILE_HEADER, ST_FILE_CODE},
    [ST_AREA_TOTALS] = {ST_FILE_HEADER + ST_FILE_CODE,
                        ST_FILE_STACKS * sizeof(struct st_heap_stack)},
    [ST_AREA_STACKS] = {ST_FILE_HEADER + ST_FILE_CODE +
                            ST_FILE_STACKS * sizeof(struct st_heap_stack),
                        ST_FILE_STACKS * sizeof(struct stack)},
    [ST_AREA_ADDRESSES] = {ST_FILE_HEADER + ST_FILE_CODE +
                               ST_FILE_STACKS * (sizeof(struct st_heap_stack) +
                                                 sizeof(struct stack)),
                           ST_FILE_ADDRESSES * sizeof(uint64_t)},
    /* The end of the file. */
    [ST_AREAS] = {ST_FILE_HEADER + ST_FILE_CODE +
                      ST_FILE_STACKS * (sizeof(struct st_heap_stack) +
                                        sizeof(struct stack)) +
                      ST_FILE_ADDRESSES * sizeof(uint64_t),
                  0},
};

_Static_assert(sizeof(struct st_heap_file_header) <= ST_FILE_HEADER,
               "the header has one page");
_Static_assert(sizeof(struct st_heap_stack) == 64, "the reader expects this");

static void* area(const struct st_heap_file* f, int number) {
  return (char*)f->header + kAreas[number].offset;
}

static bool write_zeros(int fd, uint64_t offset, uint64_t size) {
  static const char zeros[4096];
  for (uint64_t done = 0; done < size; done += sizeof zeros)
    if (pwrite(fd, zeros, sizeof zeros, (off_t)(offset + done)) !=
        (ssize_t)sizeof zeros)
      return false;
  return true;
}

/* Makes sure that the first `size` bytes of an area can be used. */
static bool hold(struct st_heap_file* f, int number, uint64_t size) {
  const struct area* a = &kAreas[number];
  if (size <= f->held[number])
    return true;
  if (size > a->size)
    return false;
  uint64_t wanted = (size + PIECE - 1) / PIECE * PIECE;
  wanted = wanted < a->size ? wanted : a->size;
  int fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  bool written = fd >= 0 && write_zeros(fd, a->offset + f->held[number],
                                        wanted - f->held[number]);
  if (fd >= 0)
    close(fd);
  if (written)
    f->held[number] = wanted;
  return written;
}

static uint64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool sizes_are_limited(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

/* Returns a new file with its header written; -1 if that is not possible. */
static int new_file(struct st_heap_file* f, const char* folder) {
  int length =
      snprintf(f->path, sizeof f->path, "%s/%d-%llx", folder, (int)getpid(),
               (unsigned long long)now_ns(CLOCK_BOOTTIME));
  if (length < 0 || (size_t)length >= sizeof f->path || sizes_are_limited())
    return -1;
  int fd =
      open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0 && (ftruncate(fd, (off_t)kAreas[ST_AREAS].offset) ||
                  !write_zeros(fd, 0, ST_FILE_HEADER))) {
    close(fd);
    unlink(f->path);
    return -1;
  }
  return fd;
}

static uint64_t read_command(char* to, size_t room) {
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd >= 0 ? read(fd, to, room) : 0;
  if (fd >= 0)
    close(fd);
  return size > 0 ? (uint64_t)size : 0;
}

/* Orders the writes before it and after it.  ThreadSanitizer doesn't know
 * fences. */
static void fence(void) {
#ifndef __SANITIZE_THREAD__
  atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* The magic is written last: a reader ignores the file before. */
static void write_header(struct st_heap_file_header* h, uint64_t interval,
                         bool from_startup) {
  h->pid = (uint32_t)getpid();
  h->ppid = (uint32_t)getppid();
  h->start_ns = now_ns(CLOCK_MONOTONIC_COARSE);
  h->first_interval = h->interval = interval;
  h->stacks = ST_FILE_OTHER_STACKS;
  h->from_startup = from_startup;
  h->command_size = read_command(h->command, sizeof h->command);
  fence();
  memcpy(h->magic, ST_FILE_MAGIC, sizeof h->magic);
}

bool st_heap_file_create(struct st_heap_file* f, const char* folder,
                         uint64_t interval, bool from_startup) {
  memset(f, 0, sizeof *f);
  f->by_hash.limit = ST_FILE_STACKS;
  int fd = new_file(f, folder);
  if (fd < 0)
    return false;
  void* memory = mmap(NULL, kAreas[ST_AREAS].offset, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED)
    return false;
  f->header = memory;
  if (!hold(f, ST_AREA_CODE, PIECE) || !hold(f, ST_AREA_TOTALS, PIECE) ||
      !hold(f, ST_AREA_STACKS, PIECE) || !hold(f, ST_AREA_ADDRESSES, PIECE)) {
    munmap(memory, kAreas[ST_AREAS].offset);
    f->header = NULL;
    return false;
  }
  write_header(f->header, interval, from_startup);
  return true;
}

void st_heap_file_leave(struct st_heap_file* f) {
  if (f->header)
    munmap(f->header, kAreas[ST_AREAS].offset);
  f->header = NULL;
  st_address_table_clear(&f->by_hash);
}

struct st_heap_stack* st_heap_file_totals(const struct st_heap_file* f) {
  return area(f, ST_AREA_TOTALS);
}

static uint64_t hash_of(const uint64_t* addresses, uint32_t depth) {
  uint64_t h = depth;
  for (uint32_t i = 0; i < depth; i++) {
    h = (h ^ addresses[i]) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h | 1;
}

static bool is_stack(const struct st_heap_file* f, uint64_t number,
                     const uint64_t* addresses, uint32_t depth) {
  const struct stack* s = (const struct stack*)area(f, ST_AREA_STACKS) + number;
  const uint64_t* its = (const uint64_t*)area(f, ST_AREA_ADDRESSES) + s->first;
  return s->depth == depth && !memcmp(its, addresses, depth * sizeof *its);
}

/* Reads the list of mapped code if an address is in none that is known. */
static void know_code(struct st_heap_file* f, const uint64_t* addresses,
                      uint32_t depth) {
  struct st_heap_file_header* h = f->header;
  for (uint32_t i = 0; i < depth; i++) {
    if (st_mapped_code_has(&f->code, addresses[i]) ||
        !st_mapped_code_miss(&f->code))
      continue;
    hold(f, ST_AREA_CODE, h->code_size + PIECE);
    st_mapped_code_read(&f->code, "/proc/self/maps", area(f, ST_AREA_CODE),
                        &h->code_size, f->held[ST_AREA_CODE]);
    return;
  }
}

/* Adds a stack.  Returns its number, or that of stacks without room. */
static uint32_t add_stack(struct st_heap_file* f, const uint64_t* addresses,
                          uint32_t depth) {
  struct st_heap_file_header* h = f->header;
  uint64_t number = h->stacks + 1, end = h->addresses + depth;
  if (!hold(f, ST_AREA_TOTALS, (number + 1) * sizeof(struct st_heap_stack)) ||
      !hold(f, ST_AREA_STACKS, (number + 1) * sizeof(struct stack)) ||
      !hold(f, ST_AREA_ADDRESSES, end * sizeof *addresses))
    return ST_FILE_OTHER_STACKS;
  know_code(f, addresses, depth);
  ((struct stack*)area(f, ST_AREA_STACKS))[number] =
      (struct stack){(uint32_t)h->addresses, depth};
  memcpy((uint64_t*)area(f, ST_AREA_ADDRESSES) + h->addresses, addresses,
         depth * sizeof *addresses);
  h->addresses = end;
  h->stacks = number;
  return (uint32_t)number;
}

uint32_t st_heap_file_stack(struct st_heap_file* f, const uint64_t* addresses,
                            uint32_t depth) {
  uint64_t hash = hash_of(addresses, depth);
  const struct st_address_slot* slot = st_address_table_find(&f->by_hash, hash);
  if (slot && is_stack(f, slot->value, addresses, depth))
    return (uint32_t)slot->value;
  uint32_t number = add_stack(f, addresses, depth);
  if (number == ST_FILE_OTHER_STACKS)
    f->header->other_stacks++;
  else if (!slot) /* Else another stack has this hash; both get numbers. */
    st_address_table_put(&f->by_hash, hash, number);
  return number;
}

void st_heap_file_begin(struct st_heap_file* f) {
  atomic_fetch_add_explicit(&f->header->changes, 1, memory_order_relaxed);
  fence();
}

void st_heap_file_end(struct st_heap_file* f, const struct st_heap_profile* p,
                      uint64_t interval) {
  struct st_heap_file_header* h = f->header;
  h->interval = interval;
  h->live = p->heaps[0].live;
  h->max = p->heaps[0].max;
  h->max_change = p->heaps[0].max_change;
  h->live_full = p->drops.live_full;
  h->out_of_memory = p->drops.out_of_memory;
  atomic_fetch_add_explicit(&h->changes, 1, memory_order_release);
}
