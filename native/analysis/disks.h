/* Disks: keeps the counts of each disk in its last sample.  The counters of a
 * disk are differences between two samples. */
#pragma once

#include "storage.h"

/* The largest field number of SysStats.DiskStat, plus 1.  The fields from 2 on
 * are counts. */
enum { ST_DISK_FIELDS = 10 };

struct st_disk {
  int64_t values[ST_DISK_FIELDS];
};

struct st_disks {
  ST_ARRAY(struct st_disk) disks;
  struct st_map by_name; /* Name to index + 1. */
};

void st_disks_free(struct st_disks* d);
