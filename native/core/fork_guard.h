/* Fork guard: calls handlers of native objects around each fork().
 *
 * Problem: fork copies memory but only the calling thread.  In the child, a
 * mutex that another thread held stays locked for ever, a structure that it was
 * changing stays half changed, and a socket or shared memory that both
 * processes use gets corrupted.
 *
 * So each object with a lock, a socket or shared memory registers an entry.
 * Around every fork(), even if C code calls it:
 *
 *   before     the entry's mutexes are locked, so no change is in progress
 *   parent     they are unlocked
 *   child      its handler drops the parent's resources; they are unlocked
 *
 * Order: entries are locked from the last registered one to the first.  So an
 * object that calls another one under its own lock must be registered after the
 * other one.
 *
 * Limits: vfork and posix_spawn do not run the handlers, and need not: no code
 * of this process runs in their child.  Handlers may call only functions that
 * are safe in a forked child; none allocates.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct st_fork_entry {
  /* The mutexes that are locked before a fork, in this order.  NULL: no
   * mutex. */
  pthread_mutex_t* mutexes[2];
  /* The handler that runs in the child with the mutexes locked.  May be
   * NULL. */
  void (*child)(void* self);
  void* self;
  struct st_fork_entry* newer;
  struct st_fork_entry* older;
};

/* Registers an entry.  The entry is a member of an object, and must be
 * unregistered before the object is freed. */
void st_fork_register(struct st_fork_entry* entry);
void st_fork_unregister(struct st_fork_entry* entry);
