/* The threshold file: the recorder raises the threshold of auto detail as the
 * trace grows (recorder/host/detail.py).
 */
#pragma once

#include <stdbool.h>

/* Maps a file that contains the threshold, a u64 in ns, which may rise later.
 * If `path` is NULL, the threshold stays as it is.  May be called only while no
 * sampling thread runs.  Returns false if the file cannot be mapped. */
bool st_threshold_use_file(const char* path);
/* Raises the threshold to that of the file.  Called by the sampling thread. */
void st_threshold_follow(void);
