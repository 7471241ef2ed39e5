#include "probes/sample_gaps.h"

void st_sample_gaps_add(struct st_sample_gaps* gaps, uint64_t begin,
                        uint64_t end) {
  if (begin >= gaps->end + gaps->least)
    gaps->begin = begin;
  gaps->end = end;
}

bool st_sample_gaps_tell(const struct st_sample_gaps* gaps, uint64_t begin,
                         uint64_t end) {
  bool told =
      gaps->begin < begin + gaps->least && end < gaps->end + gaps->least;
  return end >= begin + gaps->least && !told;
}
