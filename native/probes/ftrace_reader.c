#include "probes/ftrace_reader.h"

#include <stdlib.h>

struct st_ftrace_reader* st_ftrace_reader_new(struct st_ftrace_table table,
                                              size_t page_size,
                                              uint32_t cpu_count) {
  struct st_ftrace_reader* r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->table = table;
  r->cpu_count = cpu_count;
  bool has_batch = st_ftrace_batch_init(&r->batch, page_size);
  r->last_times = calloc(cpu_count, sizeof *r->last_times);
  st_ftrace_bundle_init(&r->bundle, &r->table);
  if (has_batch && r->last_times)
    return r;
  st_ftrace_reader_free(r);
  return NULL;
}

void st_ftrace_reader_free(struct st_ftrace_reader* r) {
  if (!r)
    return;
  st_ftrace_bundle_free(&r->bundle);
  st_ftrace_batch_free(&r->batch);
  free(r->last_times);
  free(r);
}

bool st_ftrace_read(struct st_ftrace_reader* r, int fd, uint32_t cpu) {
  r->cpu = cpu;
  r->next_page = 0;
  return st_ftrace_batch_read(&r->batch, fd);
}

static const uint8_t* page_at(const struct st_ftrace_reader* r,
                              uint32_t index) {
  return r->batch.pages + index * r->batch.page_size;
}

static bool has_lost_events(const struct st_ftrace_reader* r, uint32_t index) {
  struct st_ftrace_page page;
  st_ftrace_page_open(&page, page_at(r, index), r->batch.page_size);
  return page.lost_events;
}

bool st_ftrace_next_bundle(struct st_ftrace_reader* r,
                           struct st_message* root) {
  struct st_ftrace_bundle* b = &r->bundle;
  if (r->next_page == r->batch.count && !r->batch.error)
    return false;
  bool has_page = r->next_page < r->batch.count;
  st_ftrace_bundle_begin(b, r->cpu,
                         has_page && has_lost_events(r, r->next_page),
                         r->last_times[r->cpu], root);
  while (r->next_page < r->batch.count) {
    st_ftrace_bundle_add_page(b, page_at(r, r->next_page), r->batch.page_size);
    r->next_page++;
    if (b->name_count > ST_FTRACE_MANY_NAMES ||
        (r->next_page < r->batch.count && has_lost_events(r, r->next_page)))
      break;
  }
  if (r->next_page == r->batch.count && r->batch.error) {
    st_ftrace_bundle_add_error(b, b->last_time, r->batch.error);
    r->batch.error = 0;
  }
  st_ftrace_bundle_end(b);
  r->last_times[r->cpu] = b->last_time;
  return true;
}
