#include "probes/process_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

bool st_process_read(int pid, uint64_t address, void* to, size_t size) {
  struct iovec local = {to, size};
  struct iovec remote = {(void*)(uintptr_t)address, size};
  ssize_t copied = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (copied >= 0 && (size_t)copied != size)
    errno = EFAULT;
  return copied == (ssize_t)size;
}

int st_process_fetch(struct st_process_memory* process,
                     const struct st_memory_part* parts, int count) {
  struct iovec local[ST_PROCESS_MAX_PARTS] = {0};
  struct iovec remote[ST_PROCESS_MAX_PARTS] = {0};
  for (int i = 0; i < count; i++) {
    process->parts[i] = parts[i];
    local[i] = (struct iovec){parts[i].bytes, parts[i].size};
    remote[i] = (struct iovec){(void*)(uintptr_t)parts[i].start, parts[i].size};
  }
  ssize_t copied = process_vm_readv(process->pid, local, (unsigned long)count,
                                    remote, (unsigned long)count, 0);
  size_t left = copied > 0 ? (size_t)copied : 0;
  int complete = 0;
  for (; complete < count && left >= parts[complete].size; complete++)
    left -= parts[complete].size;
  process->part_count = complete;
  return complete;
}

static const uint8_t* view(void* self, uint64_t address, size_t size) {
  const struct st_process_memory* process = self;
  for (int i = 0; i < process->part_count; i++) {
    const struct st_memory_part* part = &process->parts[i];
    if (address >= part->start && size <= part->size &&
        address - part->start <= part->size - size)
      return part->bytes + (address - part->start);
  }
  return NULL;
}

static bool read_copy_or_process(void* self, uint64_t address, void* to,
                                 size_t size) {
  const uint8_t* copied = view(self, address, size);
  if (copied)
    memcpy(to, copied, size);
  return copied || st_process_read(((struct st_process_memory*)self)->pid,
                                   address, to, size);
}

struct st_memory st_process_source(struct st_process_memory* process) {
  return (struct st_memory){read_copy_or_process, process, view};
}
