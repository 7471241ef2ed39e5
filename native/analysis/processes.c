#include "processes.h"

#include <stdlib.h>

static struct st_table* thread_table(struct st_processes* p) {
  return &p->storage->tables[ST_THREAD_TABLE];
}

static struct st_table* process_table(struct st_processes* p) {
  return &p->storage->tables[ST_PROCESS_TABLE];
}

static uint32_t add_thread(struct st_processes* p, int64_t tid) {
  uint32_t utid = p->threads.size;
  struct st_cell cells[ST_THREAD_COLUMNS] = {
      [ST_THREAD_utid] = st_int(utid),
      [ST_THREAD_id] = st_int(utid),
      [ST_THREAD_tid] = st_int(tid),
      [ST_THREAD_is_idle] = st_int(utid == 0),
  };
  *ST_PUSH(&p->threads) = (struct st_thread){.tid = tid, .upid = ST_NO_ROW};
  st_table_add(thread_table(p), cells);
  *st_map_at(&p->by_tid, (uint64_t)tid) = utid + 1;
  return utid;
}

static void bind(struct st_processes* p, uint32_t utid, uint32_t upid) {
  struct st_thread* thread = &p->threads.data[utid];
  bool is_main = thread->tid == p->processes.data[upid].pid;
  thread->upid = upid;
  st_table_set(thread_table(p), utid, ST_THREAD_upid, st_int(upid));
  st_table_set(thread_table(p), utid, ST_THREAD_is_main_thread,
               st_int(is_main));
}

static uint32_t add_process(struct st_processes* p, int64_t pid) {
  uint32_t upid = p->processes.size;
  struct st_cell cells[ST_PROCESS_COLUMNS] = {
      [ST_PROCESS_upid] = st_int(upid),
      [ST_PROCESS_id] = st_int(upid),
      [ST_PROCESS_pid] = st_int(pid),
  };
  *ST_PUSH(&p->processes) = (struct st_process){.pid = pid};
  st_table_add(process_table(p), cells);
  *st_map_at(&p->by_pid, (uint64_t)pid) = upid + 1;
  return upid;
}

void st_processes_init(struct st_processes* p, struct st_storage* s) {
  *p = (struct st_processes){.storage = s};
  bind(p, add_thread(p, 0), add_process(p, 0));
  st_thread_set_name(p, 0, st_intern(s, "swapper"), ST_NAME_BUILT_IN);
}

/* Returns whether the newest thread of a tid may belong to the process. */
static bool fits(const struct st_processes* p, uint32_t utid, uint32_t upid) {
  uint32_t owner = p->threads.data[utid].upid;
  return owner == ST_NO_ROW || owner == upid;
}

/* Returns the thread of this tid in the process; adds it if it is new. */
static uint32_t thread_of(struct st_processes* p, int64_t tid, uint32_t upid) {
  uint32_t found = st_map_get(&p->by_tid, (uint64_t)tid);
  uint32_t utid =
      found && fits(p, found - 1, upid) ? found - 1 : add_thread(p, tid);
  if (p->threads.data[utid].upid == ST_NO_ROW)
    bind(p, utid, upid);
  return utid;
}

uint32_t st_process_get(struct st_processes* p, int64_t pid) {
  uint32_t found = st_map_get(&p->by_pid, (uint64_t)pid);
  if (found)
    return found - 1;
  uint32_t upid = add_process(p, pid);
  thread_of(p, pid, upid);
  return upid;
}

uint32_t st_thread_get(struct st_processes* p, int64_t tid, int64_t pid) {
  return thread_of(p, tid, st_process_get(p, pid));
}

uint32_t st_thread_restart(struct st_processes* p, uint32_t utid) {
  struct st_thread old = p->threads.data[utid];
  uint32_t started = add_thread(p, old.tid);
  if (old.upid != ST_NO_ROW)
    bind(p, started, old.upid);
  return started;
}

uint32_t st_process_restart(struct st_processes* p, int64_t pid) {
  uint32_t utid = add_thread(p, pid);
  uint32_t upid = add_process(p, pid);
  bind(p, utid, upid);
  return upid;
}

void st_thread_set_name(struct st_processes* p, uint32_t utid, st_string name,
                        enum st_name_priority priority) {
  struct st_thread* thread = &p->threads.data[utid];
  if (!name || priority < thread->name_priority)
    return;
  thread->name_priority = (uint8_t)priority;
  st_table_set(thread_table(p), utid, ST_THREAD_name, st_text(name));
}

void st_process_set_name(struct st_processes* p, uint32_t upid, st_string name,
                         bool replaces) {
  struct st_process* process = &p->processes.data[upid];
  if (!name || (process->has_name && !replaces))
    return;
  process->has_name = true;
  st_table_set(process_table(p), upid, ST_PROCESS_name, st_text(name));
}

void st_process_set_start(struct st_processes* p, uint32_t upid, int64_t ts) {
  if (!p->processes.data[upid].has_start)
    st_table_set(process_table(p), upid, ST_PROCESS_start_ts, st_int(ts));
  p->processes.data[upid].has_start = true;
}

void st_processes_finish(struct st_processes* p, struct st_arg_sets* sets) {
  for (uint32_t upid = 0; upid < p->processes.size; upid++) {
    struct st_arg_list* args = &p->processes.data[upid].args;
    uint32_t set = st_arg_sets_add(sets, p->storage, args);
    if (set != ST_NO_ROW)
      st_table_set(process_table(p), upid, ST_PROCESS_arg_set_id, st_int(set));
  }
}

void st_processes_free(struct st_processes* p) {
  for (uint32_t i = 0; i < p->processes.size; i++)
    st_arg_list_free(&p->processes.data[i].args);
  free(p->threads.data);
  free(p->processes.data);
  st_map_free(&p->by_tid);
  st_map_free(&p->by_pid);
}
