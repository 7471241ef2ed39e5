#include "probes/process_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/fields.h"

#define PROCESS(name) ST_FIELD_PROCESS_TREE_PROCESS_##name

enum { PATH_SIZE = 64, ENTRIES_SIZE = 4096, KTHREADD = 2 };

void st_process_reader_init(struct st_process_reader* r, const char* proc,
                            const struct st_process_options* options) {
  *r = (struct st_process_reader){.options = *options, .proc = opendir(proc)};
}

void st_process_reader_free(struct st_process_reader* r) {
  if (r->proc)
    closedir(r->proc);
  free(r->entries);
  free(r->status.data);
  free(r->other.data);
}

/* Returns the id that a directory entry has as its name; 0 if it has none. */
static int32_t id_of(const char* name) {
  struct st_text text = st_text_of(name, strlen(name));
  uint64_t id;
  return st_text_u64(&text, &id) && text.at == text.end && id <= INT32_MAX
             ? (int32_t)id
             : 0;
}

/* --- the list */

static int by_pid(const void* a, const void* b) {
  int32_t x = ((const struct st_process_entry*)a)->pid;
  int32_t y = ((const struct st_process_entry*)b)->pid;
  return (x > y) - (x < y);
}

static struct st_process_entry* find(const struct st_process_reader* r,
                                     int32_t pid) {
  struct st_process_entry key = {.pid = pid};
  return r->count ? bsearch(&key, r->entries, r->count, sizeof key, by_pid)
                  : NULL;
}

bool st_process_reader_list(struct st_process_reader* r) {
  struct st_process_entry* entries = NULL;
  size_t count = 0, capacity = 0;
  if (r->proc)
    rewinddir(r->proc);
  for (struct dirent* d; r->proc && (d = readdir(r->proc));) {
    int32_t pid = id_of(d->d_name);
    if (!pid)
      continue;
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 128;
      void* grown = realloc(entries, capacity * sizeof *entries);
      if (!grown) {
        free(entries);
        return false;
      }
      entries = grown;
    }
    const struct st_process_entry* known = find(r, pid);
    entries[count++] = known ? *known : (struct st_process_entry){.pid = pid};
  }
  if (count)
    qsort(entries, count, sizeof *entries, by_pid);
  free(r->entries);
  r->entries = entries;
  r->count = count;
  return true;
}

void st_process_reader_forget_values(struct st_process_reader* r) {
  for (size_t i = 0; i < r->count; i++)
    r->entries[i].written.present = 0;
}

void st_process_reader_forget(struct st_process_reader* r) {
  free(r->entries);
  r->entries = NULL;
  r->count = 0;
}

static struct st_text read_file(const struct st_process_reader* r, int32_t pid,
                                const char* name,
                                struct st_read_buffer* buffer) {
  char path[2 * PATH_SIZE];
  snprintf(path, sizeof path, "%d/%s", pid, name);
  return st_read_record(dirfd(r->proc), path, buffer);
}

/* --- the process tree */

static void write_thread(const struct st_status* status, int32_t tid,
                         bool named, struct st_message* tree) {
  struct st_message thread;
  st_message_begin_nested(tree, &thread, ST_FIELD_PROCESS_TREE_THREADS);
  st_write_thread(status, tid, named, &thread);
  st_message_finalize(&thread);
}

static struct st_text read_thread_file(struct st_process_reader* r,
                                       const struct st_status* thread,
                                       int32_t tid, const char* file) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "task/%d/%s", tid, file);
  return read_file(r, (int32_t)thread->tgid, path, &r->other);
}

/* Returns whether `status` shows a name as it is. */
static bool is_plain(struct st_text name) {
  size_t size = st_text_size(name);
  return !memchr(name.at, '\\', size) && !memchr(name.at, '\n', size);
}

/* Reads the name of a thread from `comm`, which the kernel writes in a third of
 * the time of `status`.  Returns false if there is none, or if `status` shows it
 * in another way: with a backslash. */
static bool read_name(struct st_process_reader* r, struct st_status* thread,
                      int32_t tid) {
  struct st_text text = read_thread_file(r, thread, tid, "comm");
  return st_text_line(&text, &thread->name) && text.at == text.end &&
         is_plain(thread->name);
}

/* Reads name and inner ids of a thread.  Returns false if it has ended. */
static bool read_thread(struct st_process_reader* r, struct st_status* thread,
                        int32_t tid, bool has_inner_ids) {
  uint64_t tgid = thread->tgid;
  if (!has_inner_ids && read_name(r, thread, tid))
    return true;
  st_parse_status(read_thread_file(r, thread, tid, "status"), thread, NULL);
  return thread->tgid == tgid;
}

/* Writes a thread that is not the main one.  `process` has the status of its
 * process. */
static void write_other_thread(struct st_process_reader* r,
                               const struct st_status* process, int32_t tid,
                               struct st_message* tree) {
  bool has_inner_ids = process->inner_ids.at < process->inner_ids.end;
  const struct st_status unknown = {.tgid = process->tgid};
  struct st_status thread = unknown;
  bool is_read = (r->options.thread_names || has_inner_ids) &&
                 read_thread(r, &thread, tid, has_inner_ids);
  write_thread(is_read ? &thread : &unknown, tid,
               is_read && r->options.thread_names, tree);
}

static int ascending(const void* a, const void* b) {
  int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
  return (x > y) - (x < y);
}

/* Reads entries of a folder, without the memory and the system calls of
 * opendir().  Returns their size in bytes; 0 or less at the end. */
static long next_entries(int fd, char* entries) {
  return syscall(SYS_getdents64, fd, entries, ENTRIES_SIZE);
}

/* Adds an id to a list that has room for a power of two; 0 is none, and an id
 * for which there is no memory is left out.  Returns the list. */
static int32_t* add_id(int32_t* ids, size_t* count, int32_t id) {
  bool is_full = (*count & (*count - 1)) == 0;
  int32_t* list = ids;
  if (id && is_full)
    list = realloc(ids, (*count ? 2 * *count : 1) * sizeof *ids);
  if (!id || !list)
    return ids;
  list[(*count)++] = id;
  return list;
}

/* Returns the ids in the folder `task` of a process, sorted; the caller frees
 * them. */
static int32_t* thread_ids(const struct st_process_reader* r, int32_t pid,
                           size_t* count) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%d/task", pid);
  int fd = openat(dirfd(r->proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int32_t* ids = NULL;
  *count = 0;
  if (fd < 0)
    return NULL;
  _Alignas(struct dirent64) char entries[ENTRIES_SIZE];
  for (long size; (size = next_entries(fd, entries)) > 0;) {
    for (long at = 0; at < size;) {
      const struct dirent64* d = (const struct dirent64*)(entries + at);
      at += d->d_reclen;
      ids = add_id(ids, count, id_of(d->d_name));
    }
  }
  close(fd);
  if (*count)
    qsort(ids, *count, sizeof *ids, ascending);
  return ids;
}

static void write_other_threads(struct st_process_reader* r,
                                const struct st_status* process,
                                struct st_message* tree) {
  size_t count;
  int32_t* ids = thread_ids(r, (int32_t)process->tgid, &count);
  for (size_t i = 0; i < count; i++) {
    if ((uint64_t)ids[i] != process->tgid)
      write_other_thread(r, process, ids[i], tree);
  }
  free(ids);
}

/* Finds the children of kthreadd. */
static void find_kernel_threads(struct st_process_reader* r) {
  for (size_t i = 0; i < r->count; i++)
    r->entries[i].has_kernel_parent = false;
  struct st_status kthreadd;
  st_parse_status(read_file(r, KTHREADD, "status", &r->status), &kthreadd,
                  NULL);
  if (!st_text_is(kthreadd.name, "kthreadd"))
    return;
  r->kernel_uid = kthreadd.uid;
  r->has_kthread = kthreadd.has_kthread;
  struct st_text ids = read_file(r, KTHREADD, "task/2/children", &r->other);
  for (uint64_t id; st_text_u64(&ids, &id);) {
    struct st_process_entry* e = id <= INT32_MAX ? find(r, (int32_t)id) : NULL;
    if (e)
      e->has_kernel_parent = true;
  }
}

/* Reads the status of a kernel thread from `stat`.  Returns false if it is none,
 * or if `status` shows its name in another way. */
static bool read_kernel_thread(struct st_process_reader* r, int32_t pid,
                               struct st_status* status,
                               struct st_process_stat* stat) {
  if (!st_parse_stat(read_file(r, pid, "stat", &r->other), stat) ||
      !(stat->flags & ST_IS_KERNEL_THREAD) || !is_plain(stat->name))
    return false;
  *status = (struct st_status){.name = stat->name,
                               .inner_ids = st_text_of(NULL, 0),
                               .tgid = (uint64_t)pid,
                               .ppid = stat->ppid,
                               .uid = r->kernel_uid,
                               .threads = 1,
                               .kthread = 1,
                               .has_kthread = r->has_kthread};
  return true;
}

static void write_start(const struct st_process_reader* r,
                        const struct st_process_stat* stat,
                        struct st_message* process) {
  st_message_append_varint(process, PROCESS(PROCESS_START_FROM_BOOT),
                           st_scaled(stat->start, r->options.ns_per_tick));
}

static void write_kernel_thread(struct st_process_reader* r,
                                const struct st_status* status,
                                const struct st_process_stat* stat,
                                struct st_message* tree) {
  struct st_message process;
  st_message_begin_nested(tree, &process, ST_FIELD_PROCESS_TREE_PROCESSES);
  st_write_process(status, st_text_of(NULL, 0), &process);
  if (r->options.ages)
    write_start(r, stat, &process);
  st_message_finalize(&process);
}

/* Writes a process that is described by `status`. */
static void write_other_process(struct st_process_reader* r,
                                const struct st_status* status,
                                struct st_message* tree) {
  struct st_process_stat stat;
  struct st_message process;
  int32_t pid = (int32_t)status->tgid;
  struct st_text cmdline = st_text_of(NULL, 0);
  if (status->kthread != 1)
    cmdline = read_file(r, pid, "cmdline", &r->other);
  st_message_begin_nested(tree, &process, ST_FIELD_PROCESS_TREE_PROCESSES);
  st_write_process(status, cmdline, &process);
  if (r->options.ages &&
      st_parse_stat(read_file(r, pid, "stat", &r->other), &stat))
    write_start(r, &stat, &process);
  st_message_finalize(&process);
}

static void write_process(struct st_process_reader* r,
                          struct st_process_entry* entry, bool with_threads,
                          struct st_message* tree) {
  struct st_status status;
  struct st_process_stat stat;
  if (with_threads && entry->has_kernel_parent &&
      read_kernel_thread(r, entry->pid, &status, &stat)) {
    write_kernel_thread(r, &status, &stat, tree);
  } else {
    st_parse_status(read_file(r, entry->pid, "status", &r->status), &status,
                    NULL);
    /* If the process has ended, its id may now be that of another process's
     * thread. */
    if (status.tgid != (uint64_t)entry->pid)
      return;
    write_other_process(r, &status, tree);
  }
  entry->is_described = true;
  if (r->options.main_threads)
    write_thread(&status, entry->pid, r->options.thread_names, tree);
  if (with_threads && status.threads != 1)
    write_other_threads(r, &status, tree);
}

void st_write_process_tree(struct st_process_reader* r,
                           enum st_process_choice choice,
                           struct st_message* tree) {
  bool all = choice == ST_ALL_PROCESSES;
  if (all && r->count)
    find_kernel_threads(r);
  for (size_t i = 0; i < r->count; i++) {
    struct st_process_entry* e = &r->entries[i];
    if (all || (e->has_values && !e->is_described))
      write_process(r, e, all, tree);
  }
}

/* --- values */

static void read_memory(struct st_process_reader* r, int32_t pid,
                        struct st_process_values* values) {
  int64_t number;
  if (r->options.smaps)
    st_parse_smaps(read_file(r, pid, "smaps_rollup", &r->other), values);
  if (st_parse_number(read_file(r, pid, "oom_score_adj", &r->other), &number))
    st_process_set(values, ST_OOM_SCORE_ADJ, (uint64_t)number);
  if (r->options.dmabuf &&
      st_parse_number(read_file(r, pid, "dmabuf_rss", &r->other), &number) &&
      number > 0) {
    number /= 1024;
    st_process_set(values, ST_DMABUF_RSS,
                   number < UINT32_MAX ? (uint64_t)number : UINT32_MAX);
  }
}

static void read_values(struct st_process_reader* r, struct st_process_entry* e,
                        struct st_process_values* values) {
  struct st_process_stat stat;
  struct st_status status;
  values->present = 0;
  if (r->options.runtimes &&
      st_parse_stat(read_file(r, e->pid, "stat", &r->other), &stat)) {
    uint64_t ns = r->options.ns_per_tick;
    st_process_set(values, ST_RUNTIME_USER, st_scaled(stat.user, ns));
    st_process_set(values, ST_RUNTIME_KERNEL, st_scaled(stat.kernel, ns));
  }
  if (e->has_no_memory)
    return;
  struct st_text text = read_file(r, e->pid, "status", &r->status);
  st_parse_status(text, &status, values);
  if (values->present & 1u << ST_VM_SIZE)
    read_memory(r, e->pid, values);
  else
    e->has_no_memory = text.at < text.end;
}

/* Returns the values that differ from those written last, as a set of bits. */
static uint32_t changes(const struct st_process_values* now,
                        const struct st_process_values* written) {
  uint32_t changed = now->present & ~written->present;
  for (unsigned i = 0; i < ST_PROCESS_VALUES; i++) {
    if (now->present & written->present & 1u << i &&
        now->value[i] != written->value[i])
      changed |= 1u << i;
  }
  return changed;
}

static void write_values(struct st_process_entry* e,
                         const struct st_process_values* now,
                         struct st_message* stats) {
  uint32_t changed = changes(now, &e->written);
  if (!changed)
    return;
  struct st_message process;
  st_message_begin_nested(stats, &process, ST_FIELD_PROCESS_STATS_PROCESSES);
  st_message_append_varint(&process, ST_FIELD_PROCESS_STATS_PROCESS_PID,
                           (uint64_t)e->pid);
  for (unsigned i = 0; i < ST_PROCESS_VALUES; i++) {
    if (changed & 1u << i) {
      st_message_append_varint(&process, st_process_fields[i], now->value[i]);
      st_process_set(&e->written, i, now->value[i]);
    }
  }
  st_message_finalize(&process);
}

void st_write_process_values(struct st_process_reader* r,
                             struct st_message* stats) {
  struct st_process_values now;
  for (size_t i = 0; i < r->count; i++) {
    struct st_process_entry* e = &r->entries[i];
    read_values(r, e, &now);
    e->has_values = now.present != 0;
    if (e->has_values)
      write_values(e, &now, stats);
  }
}
