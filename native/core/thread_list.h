/* Thread list: one record for each thread that a unit has met.
 *
 * A record is the first member of the unit's own struct.  It stays in the list
 * until its thread has ended, and is freed at the next reap:
 *
 *   init           once; before the first fork that matters
 *   add            a new record; find returns it by the thread's id
 *   claim          on its own thread: the end of the thread will be noticed
 *   mark_ended     for a thread that has not claimed its record
 *   reap           frees the records of ended threads.  In the child of a fork:
 *                  all but the record of the thread that called fork.
 *
 * Threads: the caller's lock (the GIL) guards the list.  A thread ends without
 * that lock, so it only sets `ended` and `some_ended`.
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
  uint64_t thread_id; /* never used for another thread */
  /* Release and acquire order it after all that the ended thread wrote. */
  _Atomic bool ended;
};

struct st_thread_list {
  /* Clears the ending thread's own pointer to its record. */
  void (*on_exit)(void);
  /* Frees a record that is no longer in the list.  ended: its thread has ended;
   * false: it is a thread of the parent process.  May change the list. */
  void (*free_record)(struct st_thread_record* record, bool ended);
  struct st_thread_record* first;
  struct st_thread_record* survivor; /* of the thread that called fork */
  /* Set after a record's `ended`, and cleared before these are read. */
  _Atomic bool some_ended;
  bool forked; /* set in the child, which has one thread then */
  pthread_key_t key;
  struct st_fork_entry fork;
};

/* Idempotent.  `on_exit` and `free_record` are set before. */
void st_thread_list_init(struct st_thread_list* list);
void st_thread_list_add(struct st_thread_list* list,
                        struct st_thread_record* record, uint64_t thread_id);
void st_thread_list_claim(struct st_thread_record* record);
void st_thread_list_mark_ended(struct st_thread_record* record);
void st_thread_list_reap(struct st_thread_list* list);

/* Returns the record of a thread that has not ended, or NULL. */
struct st_thread_record* st_thread_list_find(const struct st_thread_list* list,
                                             uint64_t thread_id);
