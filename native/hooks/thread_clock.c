#include "hooks/thread_clock.h"

_Thread_local struct st_clock_pair* st_thread_clock;
