/* Parses kernel events that only set counters: of file systems, and of the
 * scheduler's view of CPUs. */
#include "ftrace_events.h"
#include "importer.h"

enum { F2FS_IOSTAT = 419, F2FS_IOSTAT_LATENCY = 420, SCHED_CPU_UTIL_CFS = 421 };

/* A counter of an event: its field, and the end of its name. */
struct counter {
  uint8_t field;
  const char* name;
};

static const struct counter kBytes[] = {
    {8, "write_app_total"},    {3, "write_app_direct"},
    {1, "write_app_buffered"}, {5, "write_app_mapped"},
    {14, "write_fs_data"},     {22, "write_fs_node"},
    {20, "write_fs_meta"},     {17, "write_gc_data"},
    {18, "write_gc_node"},     {11, "write_cp_data"},
    {13, "write_cp_node"},     {12, "write_cp_meta"},
    {7, "read_app_total"},     {4, "read_app_direct"},
    {2, "read_app_buffered"},  {6, "read_app_mapped"},
    {16, "read_fs_data"},      {19, "read_fs_gdata"},
    {10, "read_fs_cdata"},     {23, "read_fs_node"},
    {21, "read_fs_meta"},      {15, "other_fs_discard"},
};

static const struct counter kLatencies[] = {
    {3, "read_data_peak"},         {1, "read_data_avg"},
    {2, "read_data_cnt"},          {22, "read_node_peak"},
    {20, "read_node_avg"},         {21, "read_node_cnt"},
    {13, "read_meta_peak"},        {11, "read_meta_avg"},
    {12, "read_meta_cnt"},         {9, "write_sync_data_peak"},
    {7, "write_sync_data_avg"},    {8, "write_sync_data_cnt"},
    {28, "write_sync_node_peak"},  {26, "write_sync_node_avg"},
    {27, "write_sync_node_cnt"},   {19, "write_sync_meta_peak"},
    {17, "write_sync_meta_avg"},   {18, "write_sync_meta_cnt"},
    {6, "write_async_data_peak"},  {4, "write_async_data_avg"},
    {5, "write_async_data_cnt"},   {25, "write_async_node_peak"},
    {23, "write_async_node_avg"},  {24, "write_async_node_cnt"},
    {16, "write_async_meta_peak"}, {14, "write_async_meta_avg"},
    {15, "write_async_meta_cnt"},
};

static void parse_f2fs(struct st_importer* m, const struct st_kernel_event* e,
                       const struct st_field* f) {
  bool is_latency = e->field == F2FS_IOSTAT_LATENCY;
  const struct counter* counters = is_latency ? kLatencies : kBytes;
  size_t count = is_latency ? sizeof kLatencies / sizeof *kLatencies
                            : sizeof kBytes / sizeof *kBytes;
  uint64_t device = f[is_latency ? 10 : 9].value;
  uint32_t major = device >> 8 & 0xFF, minor = device & 0xFF;
  for (size_t i = 0; i < count; i++) {
    struct st_fixed_track track = {
        .type = is_latency ? "f2fs_iostat_latency" : "f2fs_iostat",
        .name =
            st_kernel_text(m, "%s.[%u:%u].%s",
                           is_latency ? "f2fs_iostat_latency" : "f2fs_iostat",
                           major, minor, counters[i].name),
        .is_counter = true,
        .dimensions = {
            {"linux_device", .text = st_kernel_text(m, "%u:%u", major, minor)},
            {"counter_key", .text = st_intern(&m->storage, counters[i].name)}}};
    st_kernel_counter(m, e->ts, &track, (double)f[counters[i].field].value,
                      NULL, 0);
  }
}

static void parse_utilization(struct st_importer* m,
                              const struct st_kernel_event* e,
                              const struct st_field* f) {
  static const struct {
    const char *type, *name;
    uint8_t field;
  } kTracks[] = {{"cpu_utilization", "Util", 6},
                 {"cpu_capacity", "Cap", 2},
                 {"cpu_nr_running", "Nr Running", 11}};
  uint32_t cpu = (uint32_t)f[4].value;
  for (uint32_t i = 0; i < 3; i++) {
    struct st_fixed_track track = {
        .type = kTracks[i].type,
        .name = st_kernel_text(m, "Cpu %u %s", cpu, kTracks[i].name),
        .is_counter = true,
        .dimensions = {{"cpu", .number = cpu}}};
    st_kernel_counter(m, e->ts, &track, (double)f[kTracks[i].field].value, NULL,
                      0);
  }
}

bool st_parse_counter_event(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* f) {
  switch (e->field) {
    case F2FS_IOSTAT:
    case F2FS_IOSTAT_LATENCY:
      parse_f2fs(m, e, f);
      return true;
    case SCHED_CPU_UTIL_CFS:
      parse_utilization(m, e, f);
      return true;
    default:
      return false;
  }
}
