/* Fork guard: calls handlers of native objects around each fork().
 *
 * Problem: fork copies memory but only the calling thread.  In the child, a
 * mutex that another thread held stays locked for ever, a structure that it was
 * changing stays half changed, and a socket or shared memory that both
 * processes use gets corrupted.
 *
 * So each object with a lock, a socket or shared memory registers an entry with
 * three handlers.  They run around every fork(), even if C code calls it:
 *
 *   prepare   before, in the parent: take the lock, so no change is in progress
 *   parent    after, in the parent: release it
 *   child     after, in the child: release it, and drop the parent's resources
 *
 * Order: prepare runs from the last registered entry to the first.  So an
 * object that calls another one under its own lock must be registered after it.
 *
 * Limits: vfork and posix_spawn do not run the handlers, and need not: no code
 * of this process runs in their child.  Handlers may call only functions that
 * are safe in a forked child; none allocates.  Each of the three may be NULL.
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

/* Registers an entry.  It is a member of its object, and has to be unregistered
 * before the object is freed. */
void st_fork_register(struct st_fork_entry* entry);
void st_fork_unregister(struct st_fork_entry* entry);
