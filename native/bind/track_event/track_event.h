/* Track events, the Python side: what the files of this binding share.
 *
 *   Category.instant/slice/...   category.c, slice.c   argument parsing
 *        |
 *   st_emit()                    emit.c                one event to each session
 *        |         \
 *   thread_state.c  annotations.c                      whose thread, which args
 *        |
 *   core/track_event.h                                 bytes
 *
 * Instances.  Up to eight sessions record track events at once; each is a slot
 * (instances.c).  A category holds one bit per slot.  An event goes to every
 * slot whose bit is set, each with its own sequence.
 *
 * Threads.  A thread owns its thread_state and the sequences in it; it touches
 * them with the GIL held, so whoever holds the GIL may look at any thread's
 * state, except while its owner is `busy`: writing, maybe waiting in a stalling
 * policy without the GIL.  When
 * a thread ends, its pthread destructor returns its chunks without the GIL
 * under `lock`; Python references are dropped by the next thread that comes
 * by (reap).
 *
 * No Python code runs while a packet is open: arguments that need it (repr,
 * containers) are converted to bytes first.  Objects whose last reference may
 * go away are put aside and released after the event.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_H_
#define STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/fast_clock.h"
#include "core/identity_cache.h"
#include "core/track_event.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
  MAX_INSTANCES = 8,
  MAX_CATEGORIES = 65535,
  MAX_ARGUMENT_BYTES = 4096, /* of one argument; more is truncated, marked */
  MAX_ARGUMENT_DEPTH = 16,
};

/* ---- growing byte buffer ------------------------------------------------ */

struct bytes_builder {
  uint8_t* data;
  size_t size, capacity;
};
/* Room for n more bytes at the end (size is not changed); NULL: no memory. */
uint8_t* builder_room(struct bytes_builder* b, size_t n);
bool builder_append(struct bytes_builder* b, const void* data, size_t n);

/* ---- instances ------------------------------------------------------------ */

struct instance {
  bool active;
  uint32_t generation; /* value of the start counter when it was started */
  PyObject* arbiter_object;
  struct st_arbiter* arbiter;
  uint32_t target_buffer;
  enum st_exhausted_policy policy;
  bool filter_annotations;
  uint64_t events_written, events_lost; /* of sequences that are gone */
};

extern struct instance st_instances[MAX_INSTANCES];
extern uint32_t st_start_counter;
/* Counted: arguments that could not be converted, or were wrong. */
extern uint64_t st_argument_errors;

static inline bool instance_runs_since(int slot, uint32_t generation) {
  return st_instances[slot].active &&
         (int32_t)(generation - st_instances[slot].generation) >= 0;
}

/* ---- tracks ---------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD
  struct st_track core;
  uint8_t* descriptor; /* owned; core.descriptor points to it */
  PyObject* parent;    /* Track, or NULL: below the process (or root) */
  PyObject* name;
  uint64_t own_id; /* uuid = own_id ^ parent's uuid */
  uint8_t kind;    /* enum track_kind */
  uint8_t* extra;  /* further encoded TrackDescriptor fields */
  size_t extra_size;
  uint32_t process_generation;
} TrackObject;

enum track_kind { TRACK_CHILD, TRACK_FIXED };

extern PyTypeObject* st_track_type;
/* Brings uuid and descriptor up to date (they depend on the process). */
const struct st_track* track_resolve(TrackObject* track);
/* A new reference to the counter track of that name (a str) below the parent,
 * NULL: the process. */
TrackObject* counter_track(PyObject* name, PyObject* parent);
extern struct st_track st_process_track;
extern uint32_t st_process_generation;
uint64_t st_fnv1a(const void* data, size_t size);

extern PyTypeObject* st_flow_type;
/* Appends fixed64 fields `field` for a Flow, an int, or a sequence of them.
 * False with an exception set. */
/* Whether it looks like a flow, or like an iterable of flows.  Runs no Python
 * code: what an iterator gives is seen when it is recorded. */
bool may_be_flows(PyObject* value);
bool append_flows(struct bytes_builder* out, uint32_t field, PyObject* flows);
/* The id, where it is one Flow or int. */
bool single_flow(PyObject* flow, uint64_t* id);

/* What end() has to know (open_begins.c): begin() was called on the track, for
 * the slots in mask; it was written to those in `written`. */
void open_begins_push(uint64_t uuid, uint32_t mask, uint32_t written);
/* The slots that got the BEGIN which an end() of the track belongs to. */
uint32_t open_begins_pop(uint64_t uuid, uint32_t mask);
void open_begins_forget_ended_sessions(void);

/* ---- threads ---------------------------------------------------------------- */

enum {
  MAX_PLAIN_ARGUMENTS = 6,
  KEYWORD_ENTRIES = 32,
  MAX_TEMPLATE_VALUES = 6,
};

/* The names of one call site, none of them an option, with their ids. */
struct keyword_entry {
  PyObject* names; /* strong: tuple of str */
  uint32_t epoch;
  uint32_t count;
  uint32_t iids[MAX_PLAIN_ARGUMENTS];
};

struct thread_sequence {
  struct st_sequence core;
  PyObject* arbiter;            /* strong: core writes through it */
  struct thread_sequence* next; /* among those that are to be freed */
  int slot;
  uint32_t generation;      /* of the instance it was made for */
  uint32_t described_epoch; /* in which the thread's name was looked at */
  struct st_identity_cache names;
  struct st_identity_cache argument_names;
  struct st_identity_cache codes;     /* code object -> name iid */
  struct st_identity_cache locations; /* code object -> source location iid */
  struct call_cache* calls;           /* or NULL: see call_cache.h */
  struct template_cache* templates;   /* or NULL: see event_template.c */
  struct keyword_entry keywords[KEYWORD_ENTRIES];
  struct {
    uint32_t epoch, iid;
  } * categories;
  uint32_t category_capacity;
};

enum { MAX_DISCARDED = 64, TASK_TRACKS = 32 };

/* Direct-mapped; a task of the same address has another weak reference. */
struct task_track {
  PyObject* task; /* weak reference, or NULL */
  TrackObject* track;
};

struct thread_state {
  struct thread_sequence* sequences[MAX_INSTANCES];
  struct st_track track;
  uint8_t* descriptor;
  PyObject* name;          /* as described */
  TrackObject* task_track; /* of the asyncio task that runs now, or NULL */
  struct task_track tasks[TASK_TRACKS];
  PyObject* context; /* borrowed, compared only */
  uint64_t context_version;
  struct bytes_builder scratch;       /* used as a stack: events may nest */
  struct bytes_builder interned;      /* entries of the event being written */
  PyObject* discarded[MAX_DISCARDED]; /* released after the event */
  unsigned discarded_count;
  struct thread_sequence* done; /* freed after the event */
  unsigned converting;          /* events whose arguments are being converted */
  PyObject* traced_code;        /* borrowed, compared only: see slice.c */
  uint32_t traced_mask;
  bool busy; /* writing; it may wait in a stalling policy without the GIL */

  struct thread_state *next, *prev; /* list of all, under the GIL */
  pthread_mutex_t lock;             /* the destructor against the GIL holder */
  _Atomic bool dead;
};

extern _Thread_local struct thread_state* st_thread;

/* The calling thread's state, made on first use (this runs Python: it asks
 * for the thread's name).  NULL: no memory, or within its own making. */
struct thread_state* thread_state_get(void);
/* Describes the thread anew where it has got another name.  Called before an
 * event that may announce its state; runs Python. */
void thread_state_refresh_name(struct thread_state* t, uint32_t mask);
/* The thread's sequence for a slot, made on first use; NULL: none to be had. */
struct thread_sequence* thread_sequence_get(struct thread_state* t, int slot);
/* Looks which asyncio task runs; only after the context has changed. */
void thread_state_refresh_task(struct thread_state* t);
void thread_state_release_discarded(struct thread_state* t);
void thread_states_drop_instance(int slot);
void thread_states_clear_state(int slot);
void thread_states_flush(int slot);
void thread_states_count(int slot, uint64_t* written, uint64_t* lost);
void thread_states_reap(void);
/* In the child of a fork: only the calling thread exists, and nothing of it
 * may reach the memory of the parent. */
void thread_states_after_fork(void);
void thread_states_install_fork_handler(void);

static inline bool context_changed(const struct thread_state* t,
                                   PyThreadState* python) {
  return python->context_ver != t->context_version ||
         python->context != t->context;
}

/* ---- interning by identity ---------------------------------------------------- */

/* Drops a reference once the event is written.  NULL is allowed. */
void discard_later(struct thread_state* t, PyObject* object);

/* The cache holds its keys by strong references. */
void identity_put(struct thread_state* t, struct st_identity_cache* c,
                  uint32_t epoch, PyObject* key, uint32_t iid);

/* Id of a str for `kind`, appending a new entry to t->interned.  0: inline. */
uint32_t intern_string(struct thread_state* t, struct thread_sequence* s,
                       enum st_intern_kind kind,
                       struct st_identity_cache* cache, PyObject* string);

/* ---- emitting ------------------------------------------------------------------ */

typedef struct {
  PyObject_HEAD
  uint32_t enabled; /* bit per slot */
  uint32_t index;
  PyObject* name;
  PyObject* description;
  PyObject* tags; /* tuple of str */
  PyObject* weakrefs;
} CategoryObject;

/* What may be wrong about the call for an event, and then is left out; the
 * keyword arguments that are ours come first. */
enum event_part {
  PART_TRACK,
  PART_FLOW,
  PART_TERMINATING_FLOW,
  PART_TIMESTAMP,
  PART_ARGS,
  EVENT_OPTIONS,
  PART_POSITIONAL = EVENT_OPTIONS,
  EVENT_PARTS,
  PART_NONE = EVENT_PARTS, /* wrong, but no mark is needed */
};
extern const char* const st_part_names[EVENT_PARTS];

/* What the events of a template have in common (event_template.c). */
typedef struct {
  PyObject_HEAD
  uint64_t number; /* of no other template, ever */
  CategoryObject* category;
  PyObject* name;      /* exact str */
  PyObject* constants; /* dict of plain values, unchanged since */
  unsigned count;      /* of values that differ */
  PyObject* names[MAX_TEMPLATE_VALUES + 1]; /* tuple of the first n names */
} EventTemplateObject;

/* Everything a caller may say about an event; unset: NULL / 0.  The small ones
 * stand together: each slice zeroes all of this. */
struct event_request {
  enum st_event_type type;
  uint32_t since; /* of an END: st_start_counter at its BEGIN; a session that
                     started later, while Python ran, gets nothing */
  uint32_t skip_names; /* bit i < 32: name i is one of ours */
  uint8_t left_out;    /* bits of enum event_part that were wrong */
  bool has_timestamp;
  bool on_thread_track; /* instead of a track: the thread's, even in a task */
  CategoryObject* category;
  EventTemplateObject* template; /* where category, name and args come from */
  PyObject* name;                /* str */
  PyObject* code;                /* instead of name: named and located by it */
  TrackObject* track;            /* explicit track */
  uint64_t track_uuid;           /* instead: a track described elsewhere */
  uint64_t timestamp;
  PyObject* flow;
  PyObject* terminating_flow;
  PyObject* value; /* of a counter */
  PyObject* const* argument_values;
  PyObject* argument_names; /* tuple of str, as long as the values used */
  PyObject* more_arguments; /* dict */
  PyObject* within; /* (context variable, its value while the slice is open) */
};

/* Writes the event to the slots in mask.  Returns the slots that got it.
 * Never raises: what can't be converted is counted. */
uint32_t st_emit(const struct event_request* request, uint32_t mask);
/* Events that the calling thread is recording, one within the other: Python
 * that runs now was called by one of them. */
extern _Thread_local unsigned st_events_underway;

/* Counts wrong use of an event call, and leaves that part of it out.  False:
 * it is to be raised instead, and set (python -X dev; misuse.c). */
__attribute__((cold)) bool forgive(struct event_request* request,
                                   enum event_part part, PyObject* error,
                                   const char* format, ...);

/* Whether a keyword is one of ours (`track`, `flow`, ...), no argument. */
bool is_event_option(PyObject* name);
/* Which one it is; -1: none. */
int find_event_option(PyObject* name);
/* False: wrong, and to be raised. */
bool take_event_option(struct event_request* request, enum event_part option,
                       PyObject* value);

/* The category's cached id, or 0. */
static inline uint32_t known_category(const struct thread_sequence* s,
                                      const CategoryObject* category) {
  uint32_t index = category->index;
  bool known = index < s->category_capacity &&
               s->categories[index].epoch == s->core.epoch;
  return LIKELY(known) ? s->categories[index].iid : 0;
}

/* What a hot path needs to know, all of it cached. */
struct current {
  struct thread_sequence* sequence;
  int slot;
  uint32_t category_iid, name_iid;
  uint64_t track_uuid; /* 0: the thread's own */
};

/* One slot, cached ids, current track; false: take st_emit.  A name of NULL
 * stands for an event without category and name (END). */
static inline bool find_current(struct current* c, CategoryObject* category,
                                PyObject* name, uint32_t mask) {
  struct thread_state* t = st_thread;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return false;
  if (UNLIKELY(context_changed(t, PyThreadState_Get())))
    return false;
  c->slot = __builtin_ctz(mask);
  struct thread_sequence* s = c->sequence = t->sequences[c->slot];
  if (UNLIKELY(!s || s->generation != st_instances[c->slot].generation))
    return false;
  uint32_t epoch = s->core.epoch;
  c->category_iid = c->name_iid = 0;
  if (name) {
    c->category_iid = known_category(s, category);
    c->name_iid = st_identity_find(&s->names, epoch, name);
    if (UNLIKELY(!c->name_iid || !c->category_iid))
      return false;
  }
  c->track_uuid = 0;
  if (t->task_track) {
    uint64_t uuid = c->track_uuid = t->task_track->core.uuid;
    size_t seen = st_seen_slot(uuid);
    if (UNLIKELY(s->core.seen_tracks[seen].uuid != uuid ||
                 s->core.seen_tracks[seen].epoch != epoch))
      return false;
  }
  return true;
}

/* The hot path: an event without arguments.  False: take st_emit. */
static inline bool emit_fast(enum st_event_type type, CategoryObject* category,
                             PyObject* name, uint32_t mask) {
  struct current c;
  return find_current(&c, category, name, mask) &&
         st_sequence_write_small(&c.sequence->core, type, st_fast_now(),
                                 c.category_iid, c.name_iid, c.track_uuid);
}

/* As st_emit, for events of a template (event_template.c). */
uint32_t emit_template(const struct event_request* request, uint32_t mask);
/* Lets emit_template know a template whose names are interned now. */
void remember_template(struct thread_sequence* s,
                       const EventTemplateObject* template);
void template_cache_free(struct template_cache* cache);
extern PyTypeObject* st_event_template_type;
/* Makes the request one for an event of the template, with the first `count`
 * of its values. */
void template_request(struct event_request* request,
                      EventTemplateObject* template, PyObject* const* values,
                      Py_ssize_t count);
PyObject* template_new(CategoryObject* category, PyObject* const* args,
                       Py_ssize_t count, PyObject* kwnames);

/* An annotation with an exact int, float, bool or str; NULL: something else,
 * or no room (emit_plain.c). */
uint8_t* put_plain_argument(uint8_t* p, const uint8_t* limit, uint32_t name_iid,
                            PyObject* value);

/* With plain arguments from one call site (emit_plain.c). */
bool emit_plain(enum st_event_type type, CategoryObject* category,
                PyObject* name, uint32_t mask, PyObject* names,
                PyObject* const* values);
/* Lets emit_plain know a call site whose names are interned now. */
void remember_keywords(struct thread_state* t, struct thread_sequence* s,
                       PyObject* names);

/* Converts arguments into DebugAnnotation fields appended to t->scratch. */
struct converted_argument {
  size_t offset, size; /* value fields in t->scratch; size 0: convert late */
};
/* Values that need Python code: their encoding, appended to t->scratch.
 * Plain values (exact int of 64 bits, float, bool, None, str) are left for
 * late. */
bool argument_is_plain(PyObject* value);
void convert_argument(struct thread_state* t, PyObject* value,
                      struct converted_argument* out);
/* Appends the value fields of a plain value.  Runs no Python code. */
void append_plain_value(struct bytes_builder* out, PyObject* value);

/* Counts and forgets the exception that is set.  A KeyboardInterrupt is the
 * program's, and comes again as soon as the event is over. */
void swallow_error(void);

/* At most `size`, cut where a character of data begins. */
size_t cut_utf8(const char* data, size_t size);

/* UTF-8 of a str, however odd; *release is to be decref'ed (or NULL). */
const char* utf8_of(PyObject* string, Py_ssize_t* size, PyObject** release);

/* ---- types ----------------------------------------------------------------------- */

extern PyTypeObject* st_category_type;
int add_category_type(PyObject* module);
int add_slice_type(PyObject* module);
int add_track_type(PyObject* module);
int add_flow_type(PyObject* module);
int add_event_template_type(PyObject* module);
int add_flow_ids_type(PyObject* module);
int add_message_hook_types(PyObject* module);
int add_misuse_functions(PyObject* module);
int add_instance_functions(PyObject* module);
int add_track_event_api(PyObject* module);
void thread_state_set_hooks(PyObject* describe_thread, PyObject* current_track);
/* asyncio's function, once it is there: the hook of now is asked for new tasks
 * only. */
void thread_state_set_current_task(PyObject* current_task);

/* slice.c: a new Slice; values and names as in event_request. */
PyObject* slice_new(const struct event_request* request);
/* For a template's event: also an instant, or within a variable's value. */
PyObject* template_slice_new(const struct event_request* request);
/* Enters it, and leaves it; false: an exception is set. */
bool slice_pass(PyObject* slice);
extern PyObject* st_empty_slice; /* does nothing; shared */

#endif /* STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_H_ */
