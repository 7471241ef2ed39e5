/* Tests of exception frames with real code: a child process executes a function
 * one instruction at a time, and at each one its caller is found. */
#define _GNU_SOURCE /* dl_iterate_phdr, swab */

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probes/native_stack.h"
#include "probes/process_memory.h"
#include "probes/stopped_thread.h"

enum {
  MAX_RANGES = 64,
  MAX_STEPS = 1000000,
/* musl has no tables.  On aarch64 stubs and OpenSSL's assembly have none. */
#if defined(__x86_64__) && defined(__GLIBC__)
  HAS_TABLES = true,
#else
  HAS_TABLES = false,
#endif
};

static struct st_code_range ranges[MAX_RANGES];
static int range_count;

static int add_ranges(struct dl_phdr_info* info, size_t size, void* self) {
  uint64_t header = 0;
  (void)size, (void)self;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
      header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
  for (int i = 0; header && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    uint64_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && part->p_flags & PF_X &&
        range_count < MAX_RANGES)
      ranges[range_count++] =
          (struct st_code_range){start, start + part->p_memsz, header};
  }
  return 0;
}

static const struct st_code_range* range_of(uint64_t pc) {
  for (int i = 0; i < range_count; i++)
    if (pc >= ranges[i].start && pc < ranges[i].end)
      return &ranges[i];
  return NULL;
}

/* --- The child ------------------------------------------------------------ */

static pid_t start(void (*function)(void)) {
  pid_t pid = fork();
  if (pid == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
      _exit(1);
    raise(SIGSTOP);
    function();
    _exit(0);
  }
  return pid;
}

/* Emulators have no ptrace. */
static bool is_stopped(pid_t pid) {
  int status;
  return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
}

/* Executes an instruction.  A signal that has come meanwhile is delivered by the
 * next one. */
static bool step(pid_t pid, struct st_registers* r) {
  static int signal_number;
  int status;
  CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, (void*)(intptr_t)signal_number));
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  if (!WIFSTOPPED(status))
    return false;
  signal_number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  struct st_stopped_thread t = {.tid = pid};
  return st_stopped_thread_registers(&t, r);
}

static void end(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

/* --- Callers -------------------------------------------------------------- */

struct walk {
  struct st_memory memory;
  uint64_t return_address, sp; /* Those of the function's caller. */
  uint64_t steps, expressions, signal_frames;
};

/* Finds callers until the wanted one. */
static bool reaches_caller(struct walk* w, struct st_registers r) {
  struct st_unwind_rules rules;
  for (int depth = 0; depth < 100 && r.pc; depth++) {
    uint64_t pc = r.pc - r.is_call;
    const struct st_code_range* range = range_of(pc);
    if (r.pc == w->return_address && r.values[ST_UNWIND_SP] == w->sp)
      return true;
    if (!range || !st_eh_frame_find(&w->memory, range->header, pc, &rules))
      return false;
    w->expressions += rules.cfa_expression.size > 0;
    w->signal_frames += rules.is_signal_frame;
    if (!st_eh_frame_apply(&w->memory, &rules, &r))
      return false;
  }
  return false;
}

/* Notes the caller of a function, which is at its first instruction. */
static void note_caller(struct walk* w, struct st_registers r) {
  const struct st_code_range* range = range_of(r.pc);
  CHECK(range && st_eh_frame_step(&w->memory, range->header, &r));
  w->return_address = r.pc;
  w->sp = r.values[ST_UNWIND_SP];
}

static void check_caller(struct walk* w, const struct st_registers* r) {
  if (reaches_caller(w, *r))
    return;
  Dl_info info = {0};
  dladdr((void*)(uintptr_t)r->pc, &info);
  fprintf(stderr, "no caller at %s+0x%" PRIx64 ", near %s\n", info.dli_fname,
          r->pc - (uint64_t)(uintptr_t)info.dli_fbase, info.dli_sname);
  CHECK(!"caller is found");
}

/* Executes a function, and checks that its caller is found at each instruction.
 * Returns no steps if processes can't be traced. */
static struct walk walk_through(void (*function)(void)) {
  pid_t pid = start(function);
  struct st_process_memory process = {.pid = pid};
  struct walk w = {.memory = st_process_source(&process)};
  struct st_registers r;
  if (!is_stopped(pid))
    return w;
  range_count = 0;
  dl_iterate_phdr(add_ranges, NULL);
  do
    CHECK(step(pid, &r));
  while (r.pc != (uint64_t)(uintptr_t)function);
  note_caller(&w, r);
  while (r.pc != w.return_address || r.values[ST_UNWIND_SP] != w.sp) {
    check_caller(&w, &r);
    CHECK(step(pid, &r));
    CHECK(w.steps++ < MAX_STEPS);
  }
  end(pid);
  return w;
}

/* --- Tests ---------------------------------------------------------------- */

static char swapped[4];

/* Its call is the first one of `swab`: the stub asks the loader for it. */
static void call_library(void) {
  swab("badc", swapped, sizeof swapped);
}

static void stubs_of_library_calls_have_a_caller(void) {
  struct walk w = walk_through(call_library);
  CHECK(!w.steps || w.expressions > 0);
  printf("  %" PRIu64 " instructions, %" PRIu64 " expressions\n", w.steps,
         w.expressions);
}

static volatile sig_atomic_t signals;

static void on_signal(int number) {
  (void)number;
  signals++;
}

static void interrupt(void) {
  raise(SIGUSR1);
}

static void handler_has_the_interrupted_function_as_caller(void) {
  signal(SIGUSR1, on_signal);
  struct walk w = walk_through(interrupt);
  CHECK(!w.steps || w.signal_frames > 0);
  printf("  %" PRIu64 " instructions\n", w.steps);
}

static int (*update)(void* context, const void* data, size_t size);
static uint64_t context[64]; /* More than a SHA256_CTX has. */
static const uint8_t kData[4096];

static void digest(void) {
  update(context, kData, sizeof kData);
}

/* Its code is assembly, whose tables were written by hand: with expressions where
 * the processor's own SHA instructions are not used. */
static void assembly_has_a_caller(void) {
  setenv("OPENSSL_ia32cap", ":~0x20000000", 1);
  void* library = dlopen("libcrypto.so.3", RTLD_NOW);
  if (!library) {
    printf("  no libcrypto\n");
    return;
  }
  int (*init)(void*);
  *(void**)&init = dlsym(library, "SHA256_Init");
  *(void**)&update = dlsym(library, "SHA256_Update");
  CHECK(init && update && init(context));
  struct walk w = walk_through(digest);
  printf("  %" PRIu64 " instructions, %" PRIu64 " expressions\n", w.steps,
         w.expressions);
}

int main(void) {
  if (!HAS_TABLES)
    return 0;
  RUN(stubs_of_library_calls_have_a_caller);
  RUN(handler_has_the_interrupted_function_as_caller);
  RUN(assembly_has_a_caller);
  return 0;
}
