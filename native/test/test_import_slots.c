#include "probes/import_slots.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { PRETENDED = 4242 };

static pid_t pretended(void) {
  return PRETENDED;
}

/* A call by the slot of this program. */
static __attribute__((noinline)) pid_t parent(void) {
  return getppid();
}

/* Set at the start: where the program has a single slot for the function, its
 * address is read from that slot. */
static const void* function;

static const char* find(struct st_import* import) {
  return st_import_find(import, (const void*)(uintptr_t)parent, "getppid",
                        function);
}

static void* as_pointer(pid_t (*function)(void)) {
  return (void*)(uintptr_t)function;
}

static void calls_go_to_the_other_function_until_restored(void) {
  struct st_import import;
  pid_t before = parent();
  CHECK(find(&import) == NULL);
  CHECK(import.count > 0);
  CHECK(st_import_replace(&import, as_pointer(pretended)));
  CHECK_EQ(parent(), PRETENDED);
  st_import_restore(&import, as_pointer(pretended));
  CHECK_EQ(parent(), before);
}

/* Whether the kernel can write to the address. */
static bool is_writable(void* address) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  CHECK_EQ(write(ends[1], address, 1), 1);
  bool writable = read(ends[0], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return writable;
}

static void read_only_part_of_the_library_stays_read_only(void) {
  struct st_import import;
  CHECK(find(&import) == NULL);
  CHECK(import.read_only_begin < import.read_only_end);
  uintptr_t slot = (uintptr_t)import.slots[0];
  bool writable = slot < import.read_only_begin || slot >= import.read_only_end;
  CHECK_EQ(is_writable(import.slots[0]), writable);
  CHECK(st_import_replace(&import, as_pointer(pretended)));
  CHECK_EQ(is_writable(import.slots[0]), writable);
  st_import_restore(&import, as_pointer(pretended));
  CHECK_EQ(is_writable(import.slots[0]), writable);
}

static void slot_that_another_tool_has_replaced_stays_as_it_is(void) {
  struct st_import import, other;
  /* An address in no library, which is never called.  Functions of the C library
   * may have an address in the program itself. */
  void* outside = malloc(1);
  CHECK(find(&other) == NULL);
  CHECK(st_import_replace(&other, outside));
  const char* problem = find(&import);
  CHECK(problem != NULL);
  st_import_restore(&import, as_pointer(pretended));
  CHECK(*other.slots[0] == outside);
  st_import_restore(&other, outside);
  CHECK(find(&import) == NULL);
  free(outside);
}

static void missing_names_and_libraries_have_a_reason(void) {
  struct st_import import;
  const void* own = (const void*)(uintptr_t)parent;
  CHECK(st_import_find(&import, own, "no such name", own) != NULL);
  CHECK_EQ(import.count, 0);
  CHECK(st_import_find(&import, NULL, "getppid", own) != NULL);
  CHECK_EQ(import.count, 0);
}

int main(void) {
  function = (const void*)(uintptr_t)getppid;
  RUN(calls_go_to_the_other_function_until_restored);
  RUN(missing_names_and_libraries_have_a_reason);
  RUN(slot_that_another_tool_has_replaced_stays_as_it_is);
  RUN(read_only_part_of_the_library_stays_read_only);
  return 0;
}
