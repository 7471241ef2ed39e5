#include "probes/call_chain.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unwind.h>

/* A frame record, as x86-64 and AArch64 have it. */
struct record {
  const struct record* caller;
  uint64_t return_address;
};

/* The functions of libgcc_s, or NULL. */
static struct {
  _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void*);
  _Unwind_Ptr (*address)(struct _Unwind_Context*);
  _Unwind_Word (*frame)(struct _Unwind_Context*);
} unwinder;

static _Thread_local struct {
  bool is_known;
  uintptr_t low, high;
} stack;

/* A chain in the making. */
struct chain {
  uint64_t first; /* Frames up to this one are left out. */
  uint64_t* addresses;
  uint32_t count, room;
  uintptr_t last; /* The last frame's address. */
};

/* Whether a library refers to a symbol, or defines it. */
static bool names(void* library, const char* symbol) {
  struct link_map* map;
  const char* strings = NULL;
  size_t size = 0;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map))
    return false;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB)
      strings = (const char*)d->d_un.d_ptr;
    if (d->d_tag == DT_STRSZ)
      size = d->d_un.d_val;
  }
  return strings && memmem(strings, size, symbol, strlen(symbol) + 1);
}

void st_call_chain_prepare(void) {
  void* library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library || !dlsym(RTLD_DEFAULT, "_dl_find_object") ||
      !names(library, "_dl_find_object"))
    return;
  *(void**)&unwinder.address = dlsym(library, "_Unwind_GetIP");
  *(void**)&unwinder.frame = dlsym(library, "_Unwind_GetCFA");
  if (unwinder.address && unwinder.frame)
    *(void**)&unwinder.backtrace = dlsym(library, "_Unwind_Backtrace");
}

static void find_stack(void) {
  pthread_attr_t attributes;
  void* low;
  size_t size;
  stack.is_known = true;
  if (pthread_getattr_np(pthread_self(), &attributes))
    return;
  if (!pthread_attr_getstack(&attributes, &low, &size)) {
    stack.low = (uintptr_t)low;
    stack.high = (uintptr_t)low + size;
  }
  pthread_attr_destroy(&attributes);
}

static bool is_on_stack(uintptr_t address) {
  return address >= stack.low && address < stack.high;
}

static _Unwind_Reason_Code add_unwound(struct _Unwind_Context* context,
                                       void* self) {
  struct chain* c = self;
  uintptr_t frame = unwinder.frame(context);
  uint64_t address = unwinder.address(context);
  if (!address || frame < c->last || !is_on_stack(frame - 1) ||
      c->count == c->room)
    return _URC_END_OF_STACK;
  c->last = frame;
  if (c->count || address == c->first)
    c->addresses[c->count++] = address;
  return _URC_NO_REASON;
}

#if defined(__x86_64__) || defined(__aarch64__)

/* The bits that pointer authentication does not use. */
static const uint64_t kAddress = ((uint64_t)1 << 48) - 1;

static void follow_records(struct chain* c, const struct record* r) {
  while (c->count < c->room && is_on_stack((uintptr_t)r) &&
         is_on_stack((uintptr_t)(r + 1) - 1) && (uintptr_t)r % 8 == 0 &&
         (uintptr_t)r > c->last && (r->return_address & kAddress)) {
    c->addresses[c->count++] = r->return_address & kAddress;
    c->last = (uintptr_t)r;
    r = r->caller;
  }
}

static uint64_t first_address(const struct record* r) {
  return r->return_address & kAddress;
}

#else

static void follow_records(struct chain* c, const struct record* r) {
  (void)c, (void)r;
}

static uint64_t first_address(const struct record* r) {
  (void)r;
  return 0;
}

#endif

uint32_t st_call_chain(const void* frame, uint64_t* addresses, uint32_t room) {
  struct chain c = {first_address(frame), addresses, 0, room, 0};
  if (!stack.is_known)
    find_stack();
  if (is_on_stack((uintptr_t)frame)) {
    if (unwinder.backtrace)
      unwinder.backtrace(add_unwound, &c);
    c.last = c.count ? c.last : 0;
    if (!c.count)
      follow_records(&c, frame);
  }
  if (!c.count && room)
    addresses[c.count++] = c.first;
  return c.count;
}
