#include "hooks/fork_call.h"

#include "hooks/python_layout.h"

/* How many callers of a call are searched for F. */
enum { MAX_CALLERS = 32 };

static struct st_stack_frame forking;
static int instruction;

void st_fork_call_note(void) {
  forking = st_python_frame(PyThreadState_Get());
  instruction = forking.address ? st_python_instruction(forking) : 0;
}

bool st_fork_call_is_open(void) {
  struct st_stack_frame f = st_python_frame(PyThreadState_Get());
  for (int i = 0; f.address && i < MAX_CALLERS; i++) {
    if (f.address == forking.address)
      return f.code == forking.code && st_python_instruction(f) == instruction;
    f = st_python_caller(f);
  }
  return false;
}
