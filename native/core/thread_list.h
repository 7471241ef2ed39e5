/* Thread list: a list with one record per thread.
 *
 * A record is the first member of its owner's struct.  It stays in the list
 * until its thread has ended, and is freed at the next reap:
 *
 *   init           once, before the first fork of interest
 *   add            adds a new record; find returns it by the thread's id
 *   claim          called on the record's thread, whose end is then detected;
 *                  cancels an earlier mark_ended
 *   mark_ended     for a thread that has not claimed its record.  (A claimed
 *                  record is used until the thread's exit handlers have run.)
 *   reap           frees the records of ended threads.  In the child of a fork:
 *                  also those of all threads that exist only in the parent.
 *
 * Threads: any; a mutex guards the list.  A thread that ends takes no lock: it
 * only sets `ended` and `some_ended`.  A caller that uses the record of another
 * thread needs a lock of its own that reaps take, too (the GIL).
 *
 * Fork: the list's mutex is not locked for a fork, because a visit of the
 * records holds this mutex and may lock other mutexes, which are locked for a
 * fork.  The child makes the list's mutex anew, and marks the records of the
 * threads that it lacks: threads that the child starts may add theirs before
 * the next reap.  The links are valid at each moment of a change, but a record
 * that was being removed may leak.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fork_guard.h"

struct st_thread_list;

struct st_thread_record {
  struct st_thread_record* next;
  struct st_thread_list* list;
  uint64_t thread_id; /* The thread's id, which no other thread ever gets. */
  /* Whether the thread has ended.  A thread that reads `true` also sees all
   * writes of the ended thread (release and acquire). */
  _Atomic bool ended;
  bool claimed;
  bool lost; /* Whether the thread exists only in the parent process. */
};

struct st_thread_list {
  pthread_mutex_t mutex;
  /* Clears the ending thread's own pointer to its record.  Called on that
   * thread. */
  void (*on_exit)(void);
  /* Frees a record that was removed from the list.  If `ended` is false, its
   * thread exists only in the parent process.  May change the list. */
  void (*free_record)(struct st_thread_record* record, bool ended);
  struct st_thread_record* first;
  /* Whether `ended` or `lost` is set in some record.  `some_ended` is set after
   * the record's member, and cleared before the records are read. */
  _Atomic bool some_ended;
  pthread_key_t key;
  struct st_fork_entry fork;
};

/* Initialises a list.  The caller has set its `on_exit` and `free_record`.  A
 * second call has no effect. */
void st_thread_list_init(struct st_thread_list* list);
void st_thread_list_add(struct st_thread_list* list,
                        struct st_thread_record* record, uint64_t thread_id);
void st_thread_list_claim(struct st_thread_record* record);
/* Marks the record of a thread as ended, unless the thread has claimed it. */
void st_thread_list_mark_ended(struct st_thread_record* record);
void st_thread_list_reap(struct st_thread_list* list);

/* Returns the record of the thread with this id, or NULL if that thread has
 * ended or has no record. */
struct st_thread_record* st_thread_list_find(struct st_thread_list* list,
                                             uint64_t thread_id);

/* Calls `visit` for each record, with the list's mutex locked. */
void st_thread_list_visit(struct st_thread_list* list,
                          void (*visit)(struct st_thread_record*,
                                        void* context),
                          void* context);
