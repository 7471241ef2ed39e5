#include "probes/ftrace_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct st_ftrace_reader* st_ftrace_reader_new(struct st_ftrace_table table,
                                              size_t page_size,
                                              uint32_t cpu_count) {
  struct st_ftrace_reader* r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->table = table;
  r->page_size = page_size;
  r->cpu_count = cpu_count;
  r->pages = malloc(page_size * ST_FTRACE_BATCH_PAGES);
  r->last_times = calloc(cpu_count, sizeof *r->last_times);
  st_ftrace_bundle_init(&r->bundle, &r->table);
  if (r->pages && r->last_times)
    return r;
  st_ftrace_reader_free(r);
  return NULL;
}

void st_ftrace_reader_free(struct st_ftrace_reader* r) {
  if (!r)
    return;
  st_ftrace_bundle_free(&r->bundle);
  free(r->pages);
  free(r->last_times);
  free(r);
}

/* Returns whether an error means that there is no page now: the buffer is
 * empty, another reader uses it, or the CPU is offline. */
static bool means_no_page(int error) {
  return error == EAGAIN || error == EBUSY || error == ENOMEM ||
         error == ENODEV || error == EINTR;
}

static bool is_half_full(const uint8_t* page, size_t size) {
  uint64_t commit;
  memcpy(&commit, page + 8, sizeof commit);
  return (commit & ((1u << 27) - 1)) >= size / 2;
}

bool st_ftrace_read(struct st_ftrace_reader* r, int fd, uint32_t cpu) {
  r->cpu = cpu;
  r->page_count = r->next_page = r->read_error = 0;
  while (r->page_count < ST_FTRACE_BATCH_PAGES) {
    uint8_t* page = r->pages + r->page_count * r->page_size;
    ssize_t n = read(fd, page, r->page_size);
    if (n <= 0) {
      if (n < 0 && !means_no_page(errno))
        r->read_error = ST_FTRACE_READ_ERROR;
      return false;
    }
    if ((size_t)n != r->page_size) {
      r->read_error = ST_FTRACE_PARTIAL_PAGE;
      return false;
    }
    /* A page that is less than half full is the one that the kernel is writing,
     * so the batch ends.  But the first page may be left over from an earlier
     * read. */
    if (r->page_count++ > 0 && !is_half_full(page, r->page_size))
      return false;
  }
  return true;
}

static bool has_lost_events(const struct st_ftrace_reader* r, uint32_t index) {
  struct st_ftrace_page page;
  st_ftrace_page_open(&page, r->pages + index * r->page_size, r->page_size);
  return page.lost_events;
}

bool st_ftrace_next_bundle(struct st_ftrace_reader* r,
                           struct st_message* root) {
  struct st_ftrace_bundle* b = &r->bundle;
  if (r->next_page == r->page_count && !r->read_error)
    return false;
  bool has_page = r->next_page < r->page_count;
  st_ftrace_bundle_begin(b, r->cpu,
                         has_page && has_lost_events(r, r->next_page),
                         r->last_times[r->cpu], root);
  while (r->next_page < r->page_count) {
    st_ftrace_bundle_add_page(b, r->pages + r->next_page * r->page_size,
                              r->page_size);
    r->next_page++;
    if (b->name_count > ST_FTRACE_MANY_NAMES ||
        (r->next_page < r->page_count && has_lost_events(r, r->next_page)))
      break;
  }
  if (r->next_page == r->page_count && r->read_error) {
    st_ftrace_bundle_add_error(b, b->last_time, r->read_error);
    r->read_error = 0;
  }
  st_ftrace_bundle_end(b);
  r->last_times[r->cpu] = b->last_time;
  return true;
}
