/* Fork guard: tells native objects that they now live in a forked child.
 *
 * Problem: fork copies memory but only the calling thread.  A mutex that
 * another thread held stays locked for ever in the child, a structure that it
 * was changing stays half changed, and a socket or shared memory that both
 * processes think they own gets corrupted.
 *
 * So each object that has such a thing registers an entry.  Around every
 * fork(), whoever calls it, even from C:
 *
 *   prepare   before, in the parent: take your lock (all whole, then)
 *   parent    after, in the parent: release it
 *   child     after, in the child: release it, and give up what is the parent's
 *
 * Order: prepare goes from the entry registered last to the first one; who
 * calls into another object under its own lock must therefore be registered
 * after that object.
 *
 * Limits: vfork and posix_spawn don't come by here, and needn't: nothing of
 * this process runs in their child.  The handlers may only do what is safe in
 * a forked child; none allocates.  Any of the three may be NULL.
 */
#pragma once

#include <stdint.h>

struct st_fork_entry {
  void (*prepare)(void* self);
  void (*parent)(void* self);
  void (*child)(void* self);
  void* self;
  struct st_fork_entry* newer;
  struct st_fork_entry* older;
};

/* The entry is part of its object; it is unregistered before that dies. */
void st_fork_register(struct st_fork_entry* entry);
void st_fork_unregister(struct st_fork_entry* entry);

/* Number of forks between the first process and this one.  Remember it at
 * creation to know later that you are a copy. */
uint32_t st_fork_generation(void);
