#include "hooks/hook_thread.h"

_Thread_local struct st_hook_thread st_hook_thread;
