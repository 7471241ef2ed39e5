#include "thread_list.h"

#include <stddef.h>

static void on_fork_child(void* object) {
  struct st_thread_list* list = object;
  pthread_mutex_init(&list->mutex, NULL);
  struct st_thread_record* survivor = pthread_getspecific(list->key);
  for (struct st_thread_record* r = list->first; r; r = r->next)
    r->lost = r != survivor;
  atomic_store(&list->some_ended, true);
}

static void end(struct st_thread_record* record) {
  struct st_thread_list* list = record->list;
  /* From now on another thread may free the record. */
  atomic_store(&record->ended, true);
  atomic_store(&list->some_ended, true);
}

void st_thread_list_mark_ended(struct st_thread_record* record) {
  if (!record->claimed)
    end(record);
}

static void on_thread_exit(void* record) {
  ((struct st_thread_record*)record)->list->on_exit();
  end(record);
}

void st_thread_list_init(struct st_thread_list* list) {
  if (list->fork.child)
    return;
  pthread_mutex_init(&list->mutex, NULL);
  pthread_key_create(&list->key, on_thread_exit);
  list->fork = (struct st_fork_entry){.child = on_fork_child, .self = list};
  st_fork_register(&list->fork);
}

void st_thread_list_add(struct st_thread_list* list,
                        struct st_thread_record* record, uint64_t thread_id) {
  record->list = list;
  record->thread_id = thread_id;
  pthread_mutex_lock(&list->mutex);
  record->next = list->first;
  list->first = record;
  pthread_mutex_unlock(&list->mutex);
}

void st_thread_list_claim(struct st_thread_record* record) {
  /* The thread runs, so whoever has marked the record was wrong. */
  atomic_store(&record->ended, false);
  record->claimed = true;
  pthread_setspecific(record->list->key, record);
}

/* Removes the records of ended threads, and those of threads that exist only in
 * the parent process.  Returns a list of the removed records. */
static struct st_thread_record* remove_gone(struct st_thread_list* list) {
  struct st_thread_record* gone = NULL;
  pthread_mutex_lock(&list->mutex);
  for (struct st_thread_record** p = &list->first; *p;) {
    struct st_thread_record* r = *p;
    if (!r->lost && !atomic_load(&r->ended)) {
      p = &r->next;
      continue;
    }
    *p = r->next;
    r->next = gone;
    gone = r;
  }
  pthread_mutex_unlock(&list->mutex);
  return gone;
}

void st_thread_list_reap(struct st_thread_list* list) {
  if (!atomic_exchange(&list->some_ended, false))
    return;
  struct st_thread_record* gone = remove_gone(list);
  /* The mutex is unlocked here, because free_record may change the list. */
  while (gone) {
    struct st_thread_record* r = gone;
    gone = r->next;
    list->free_record(r, !r->lost);
  }
}

struct st_thread_record* st_thread_list_find(struct st_thread_list* list,
                                             uint64_t thread_id) {
  pthread_mutex_lock(&list->mutex);
  struct st_thread_record* r = list->first;
  while (r && (r->thread_id != thread_id || atomic_load(&r->ended)))
    r = r->next;
  pthread_mutex_unlock(&list->mutex);
  return r;
}

void st_thread_list_visit(struct st_thread_list* list,
                          void (*visit)(struct st_thread_record*,
                                        void* context),
                          void* context) {
  pthread_mutex_lock(&list->mutex);
  for (struct st_thread_record* r = list->first; r; r = r->next)
    visit(r, context);
  pthread_mutex_unlock(&list->mutex);
}
