#include "processes.h"

#include <stdlib.h>

enum { MAX_SAME_TID = 64 };

static struct st_table* thread_table(struct st_processes* p) {
  return &p->storage->tables[ST_THREAD_TABLE];
}

static struct st_table* process_table(struct st_processes* p) {
  return &p->storage->tables[ST_PROCESS_TABLE];
}

static struct st_pids* pids(const struct st_processes* p) {
  return &p->machines.data[p->machine];
}

static uint32_t add_thread(struct st_processes* p, int64_t tid) {
  uint32_t utid = p->threads.size;
  struct st_cell cells[ST_THREAD_COLUMNS] = {
      [ST_THREAD_utid] = st_int(utid),
      [ST_THREAD_id] = st_int(utid),
      [ST_THREAD_tid] = st_int(tid),
      [ST_THREAD_is_idle] = st_int(0),
      [ST_THREAD_machine_id] = st_machine_cell(p->machine),
  };
  uint32_t* newest = st_map_at(&pids(p)->by_tid, (uint64_t)tid);
  *ST_PUSH(&p->threads) =
      (struct st_thread){.tid = tid, .upid = ST_NO_ROW, .previous = *newest};
  st_table_add(thread_table(p), cells);
  *newest = utid + 1;
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
      [ST_PROCESS_machine_id] = st_machine_cell(p->machine),
  };
  *ST_PUSH(&p->processes) = (struct st_process){.pid = pid};
  st_table_add(process_table(p), cells);
  *st_map_at(&pids(p)->by_pid, (uint64_t)pid) = upid + 1;
  return upid;
}

/* Adds a machine, and its idle process, which no pid means yet. */
static void add_machine(struct st_processes* p) {
  *ST_PUSH(&p->machines) = (struct st_pids){0};
  uint32_t utid = add_thread(p, 0), upid = add_process(p, 0);
  struct st_pids* ids = pids(p);
  bind(p, utid, upid);
  st_table_set(thread_table(p), utid, ST_THREAD_is_idle, st_int(1));
  *st_map_at(&ids->by_tid, 0) = *st_map_at(&ids->by_pid, 0) = 0;
  ids->idle_utid = utid;
  ids->idle_upid = upid;
}

void st_processes_init(struct st_processes* p, struct st_storage* s) {
  *p = (struct st_processes){.storage = s};
  add_machine(p);
}

void st_processes_use_machine(struct st_processes* p, uint32_t machine) {
  p->machine = machine;
  if (machine < p->machines.size)
    return;
  add_machine(p);
  st_processes_use_idle(p);
}

void st_processes_use_idle(struct st_processes* p) {
  struct st_pids* ids = pids(p);
  *st_map_at(&ids->by_tid, 0) = ids->idle_utid + 1;
  *st_map_at(&ids->by_pid, 0) = ids->idle_upid + 1;
  st_thread_set_name(p, ids->idle_utid, st_intern(p->storage, "swapper"),
                     ST_NAME_BUILT_IN);
}

bool st_thread_is_alive(const struct st_processes* p, uint32_t utid) {
  const struct st_thread* thread = &p->threads.data[utid];
  if (thread->has_ended || thread->upid == ST_NO_ROW)
    return !thread->has_ended;
  const struct st_process* process = &p->processes.data[thread->upid];
  uint32_t current = st_map_get(&pids(p)->by_pid, (uint64_t)process->pid);
  return !process->has_ended && (!current || current - 1 == thread->upid);
}

/* Returns the newest thread of a tid that is alive.  Its process must be `upid`
 * or unknown; if upid is ST_NO_ROW, it may be any.  Returns ST_NO_ROW if there
 * is no such thread. */
static uint32_t find_thread(const struct st_processes* p, int64_t tid,
                            uint32_t upid) {
  uint32_t at = st_map_get(&pids(p)->by_tid, (uint64_t)tid);
  for (uint32_t n = 0; at && n < MAX_SAME_TID; n++) {
    const struct st_thread* thread = &p->threads.data[at - 1];
    bool fits =
        upid == ST_NO_ROW || thread->upid == ST_NO_ROW || thread->upid == upid;
    if (fits && st_thread_is_alive(p, at - 1))
      return at - 1;
    at = thread->previous;
  }
  return ST_NO_ROW;
}

uint32_t st_thread_find(const struct st_processes* p, int64_t tid) {
  return find_thread(p, tid, ST_NO_ROW);
}

uint32_t st_thread_seen(struct st_processes* p, int64_t tid) {
  uint32_t utid = st_thread_find(p, tid);
  return utid == ST_NO_ROW ? add_thread(p, tid) : utid;
}

static void associate(struct st_processes* p, uint32_t utid, uint32_t other,
                      uint32_t child) {
  struct st_thread* thread = &p->threads.data[utid];
  *ST_PUSH(&p->associations) = (struct st_association){
      .next = thread->pending, .utid = other, .child = child};
  thread->pending = p->associations.size;
}

static void set_parent(struct st_processes* p, uint32_t child,
                       uint32_t parent) {
  st_table_set(process_table(p), child, ST_PROCESS_parent_upid, st_int(parent));
}

/* Applies the associations of a thread whose process has become known.  Threads
 * of the same process are bound to it; then their associations are applied,
 * too. */
static void resolve(struct st_processes* p, uint32_t utid, uint32_t upid) {
  p->resolved.size = 0;
  *ST_PUSH(&p->resolved) = utid;
  while (p->resolved.size) {
    utid = p->resolved.data[--p->resolved.size];
    uint32_t at = p->threads.data[utid].pending;
    p->threads.data[utid].pending = 0;
    while (at) {
      struct st_association a = p->associations.data[at - 1];
      at = a.next;
      if (a.child != ST_NO_ROW) {
        set_parent(p, a.child, upid);
      } else if (p->threads.data[a.utid].upid == ST_NO_ROW) {
        bind(p, a.utid, upid);
        *ST_PUSH(&p->resolved) = a.utid;
      }
    }
  }
}

uint32_t st_thread_of(struct st_processes* p, int64_t tid, uint32_t upid) {
  uint32_t utid = find_thread(p, tid, upid);
  if (utid == ST_NO_ROW)
    utid = add_thread(p, tid);
  if (p->threads.data[utid].upid == ST_NO_ROW)
    bind(p, utid, upid);
  resolve(p, utid, upid);
  return utid;
}

uint32_t st_process_seen(struct st_processes* p, int64_t pid) {
  uint32_t found = st_map_get(&pids(p)->by_pid, (uint64_t)pid);
  return found ? found - 1 : add_process(p, pid);
}

uint32_t st_process_get(struct st_processes* p, int64_t pid) {
  uint32_t found = st_map_get(&pids(p)->by_pid, (uint64_t)pid);
  if (found)
    return found - 1;
  uint32_t upid = add_process(p, pid);
  st_thread_of(p, pid, upid);
  return upid;
}

uint32_t st_thread_get(struct st_processes* p, int64_t tid, int64_t pid) {
  return st_thread_of(p, tid, st_process_get(p, pid));
}

uint32_t st_thread_restart(struct st_processes* p, uint32_t utid) {
  struct st_thread old = p->threads.data[utid];
  uint32_t started = add_thread(p, old.tid);
  if (old.upid != ST_NO_ROW)
    bind(p, started, old.upid);
  return started;
}

/* Removes the threads that had this tid from lookups. */
static void forget_tid(struct st_processes* p, int64_t tid) {
  *st_map_at(&pids(p)->by_tid, (uint64_t)tid) = 0;
}

uint32_t st_process_restart(struct st_processes* p, int64_t pid) {
  forget_tid(p, pid);
  uint32_t utid = add_thread(p, pid);
  uint32_t upid = add_process(p, pid);
  bind(p, utid, upid);
  return upid;
}

uint32_t st_thread_start(struct st_processes* p, int64_t tid, int64_t ts) {
  uint32_t utid = add_thread(p, tid);
  st_table_set(thread_table(p), utid, ST_THREAD_start_ts, st_int(ts));
  return utid;
}

uint32_t st_process_start(struct st_processes* p, int64_t pid, int64_t ts,
                          st_string name) {
  uint32_t upid = st_process_restart(p, pid);
  uint32_t utid = p->threads.size - 1;
  st_table_set(thread_table(p), utid, ST_THREAD_start_ts, st_int(ts));
  st_thread_set_name(p, utid, name, ST_NAME_FTRACE);
  st_process_set_start(p, upid, ts);
  st_process_set_name(p, upid, name, true);
  return upid;
}

void st_thread_end(struct st_processes* p, int64_t tid, int64_t ts) {
  uint32_t utid = st_thread_find(p, tid);
  if (utid == ST_NO_ROW)
    return;
  struct st_thread* thread = &p->threads.data[utid];
  thread->has_ended = true;
  st_table_set(thread_table(p), utid, ST_THREAD_end_ts, st_int(ts));
  uint32_t upid = thread->upid;
  if (upid == ST_NO_ROW || p->processes.data[upid].pid != tid)
    return;
  p->processes.data[upid].has_ended = true;
  st_table_set(process_table(p), upid, ST_PROCESS_end_ts, st_int(ts));
  *st_map_at(&pids(p)->by_pid, (uint64_t)tid) = 0;
}

void st_threads_associate(struct st_processes* p, uint32_t a, uint32_t b) {
  uint32_t of_a = p->threads.data[a].upid, of_b = p->threads.data[b].upid;
  if (of_a == ST_NO_ROW && of_b == ST_NO_ROW) {
    associate(p, a, b, ST_NO_ROW);
    associate(p, b, a, ST_NO_ROW);
  } else if (of_a == ST_NO_ROW || of_b == ST_NO_ROW) {
    uint32_t utid = of_a == ST_NO_ROW ? a : b;
    uint32_t upid = of_a == ST_NO_ROW ? of_b : of_a;
    bind(p, utid, upid);
    resolve(p, utid, upid);
  } else if (of_a != of_b) {
    p->errors++;
  }
}

void st_process_set_parent_thread(struct st_processes* p, uint32_t child,
                                  uint32_t utid) {
  uint32_t upid = p->threads.data[utid].upid;
  if (upid == ST_NO_ROW)
    associate(p, utid, ST_NO_ROW, child);
  else
    set_parent(p, child, upid);
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
  free(p->associations.data);
  free(p->resolved.data);
  for (uint32_t i = 0; i < p->machines.size; i++) {
    st_map_free(&p->machines.data[i].by_tid);
    st_map_free(&p->machines.data[i].by_pid);
  }
  free(p->machines.data);
}
