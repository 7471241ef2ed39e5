#include "thread_list.h"

#include <stddef.h>

static void on_fork_child(void* object) {
  struct st_thread_list* list = object;
  list->survivor = pthread_getspecific(list->key);
  list->forked = true;
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
  pthread_key_create(&list->key, on_thread_exit);
  list->fork = (struct st_fork_entry){.child = on_fork_child, .self = list};
  st_fork_register(&list->fork);
}

void st_thread_list_add(struct st_thread_list* list,
                        struct st_thread_record* record, uint64_t thread_id) {
  record->list = list;
  record->thread_id = thread_id;
  record->next = list->first;
  list->first = record;
}

void st_thread_list_claim(struct st_thread_record* record) {
  record->claimed = true;
  pthread_setspecific(record->list->key, record);
}

/* Frees the records of ended threads.  The records are removed from the list
 * first, because freeing a record may change the list. */
void st_thread_list_reap(struct st_thread_list* list) {
  bool forked = list->forked;
  list->forked = false;
  if (!atomic_exchange(&list->some_ended, false) && !forked)
    return;
  struct st_thread_record* gone = NULL;
  for (struct st_thread_record** p = &list->first; *p;) {
    struct st_thread_record* r = *p;
    if (forked ? r == list->survivor : !atomic_load(&r->ended)) {
      p = &r->next;
      continue;
    }
    *p = r->next;
    r->next = gone;
    gone = r;
  }
  while (gone) {
    struct st_thread_record* r = gone;
    gone = r->next;
    list->free_record(r, !forked);
  }
}

struct st_thread_record* st_thread_list_find(const struct st_thread_list* list,
                                             uint64_t thread_id) {
  struct st_thread_record* r = list->first;
  while (r && (r->thread_id != thread_id || atomic_load(&r->ended)))
    r = r->next;
  return r;
}
