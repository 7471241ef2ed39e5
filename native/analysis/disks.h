/* Disks: the counts of each disk in the last sample, to compute differences. */
#pragma once

#include "storage.h"

/* The fields of SysStats.DiskStat, from 2 on. */
enum { ST_DISK_FIELDS = 10 };

struct st_disk {
  int64_t values[ST_DISK_FIELDS];
};

struct st_disks {
  ST_ARRAY(struct st_disk) disks;
  struct st_map by_name; /* Index + 1. */
};

void st_disks_free(struct st_disks* d);
