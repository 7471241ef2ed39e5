#include "probes/perf_event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/perf_record.h"
#include "probes/perf_register.h"

static void set_sampling(struct perf_event_attr* a,
                         const struct st_perf_sampling* s) {
  a->use_clockid = 1;
  a->clockid = s->clock;
  if (!s->frequency && !s->period)
    return;
  a->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
  a->sample_id_all = 1;
  a->freq = s->frequency != 0;
  a->sample_period = s->frequency ? s->frequency : s->period;
  if (!st_perf_has_stacks(s))
    return;
  a->sample_type |= PERF_SAMPLE_CALLCHAIN;
  a->exclude_callchain_kernel = !s->kernel_frames;
  a->exclude_callchain_user = !s->user_frames || s->user_stack;
  if (s->user_stack) {
    a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    a->sample_regs_user = ST_PERF_REGISTER_MASK;
    /* As much as a record can have: the kernel shortens it by the rest. */
    a->sample_stack_user = ST_PERF_MAX_RECORD;
  }
  a->mmap = a->mmap2 = a->comm = a->comm_exec = a->task = 1;
}

int st_perf_event_open(const struct st_perf_event* event,
                       const struct st_perf_sampling* sampling, int cpu,
                       int group) {
  struct perf_event_attr a = {
      .type = event->type,
      .size = sizeof a,
      .config = event->config,
      .config1 = event->config1,
      .config2 = event->config2,
      .read_format = PERF_FORMAT_GROUP,
      .disabled = group < 0,
      .exclude_user = event->exclude_user,
      .exclude_kernel = event->exclude_kernel,
      .exclude_hv = event->exclude_hypervisor,
  };
  set_sampling(&a, sampling);
  int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, group,
                        PERF_FLAG_FD_CLOEXEC);
  if (fd < 0 || !event->filter ||
      ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->filter) == 0)
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool st_perf_event_enable(int leader, bool enable) {
  unsigned long request =
      enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
  return ioctl(leader, request, PERF_IOC_FLAG_GROUP) == 0;
}
