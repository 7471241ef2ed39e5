#include "fork_guard.h"

#include <stddef.h>

/* This mutex guards the list of registered entries. */
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct st_fork_entry* g_newest;
static struct st_fork_entry* g_oldest;

static void unlock(const struct st_fork_entry* e) {
  for (int i = 1; i >= 0; i--) {
    if (e->mutexes[i])
      pthread_mutex_unlock(e->mutexes[i]);
  }
}

static void before_fork(void) {
  pthread_mutex_lock(&g_mutex);
  for (struct st_fork_entry* e = g_newest; e; e = e->older) {
    for (int i = 0; i < 2 && e->mutexes[i]; i++)
      pthread_mutex_lock(e->mutexes[i]);
  }
}

static void after_fork_in_parent(void) {
  for (struct st_fork_entry* e = g_oldest; e; e = e->newer)
    unlock(e);
  pthread_mutex_unlock(&g_mutex);
}

static void after_fork_in_child(void) {
  for (struct st_fork_entry* e = g_oldest; e; e = e->newer) {
    if (e->child)
      e->child(e->self);
    unlock(e);
  }
  pthread_mutex_unlock(&g_mutex);
}

static void install(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void st_fork_register(struct st_fork_entry* entry) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);

  pthread_mutex_lock(&g_mutex);
  entry->newer = NULL;
  entry->older = g_newest;
  if (g_newest)
    g_newest->newer = entry;
  else
    g_oldest = entry;
  g_newest = entry;
  pthread_mutex_unlock(&g_mutex);
}

void st_fork_unregister(struct st_fork_entry* entry) {
  pthread_mutex_lock(&g_mutex);
  if (entry->newer)
    entry->newer->older = entry->older;
  else
    g_newest = entry->older;
  if (entry->older)
    entry->older->newer = entry->newer;
  else
    g_oldest = entry->newer;
  pthread_mutex_unlock(&g_mutex);
}
