#include "bind/track_event/instances.h"

struct instance st_instances[MAX_INSTANCES];
uint32_t st_start_counter;
