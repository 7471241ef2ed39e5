#include "probes/process_files.h"

#include "core/fields.h"

#define PROCESS(name) ST_FIELD_PROCESS_TREE_PROCESS_##name
#define THREAD(name) ST_FIELD_PROCESS_TREE_THREAD_##name
#define STATS(name) ST_FIELD_PROCESS_STATS_PROCESS_##name

static const uint64_t kMaxPid = INT32_MAX;

const uint8_t st_process_fields[] = {
    STATS(VM_SIZE_KB),          STATS(VM_RSS_KB),
    STATS(RSS_ANON_KB),         STATS(RSS_FILE_KB),
    STATS(RSS_SHMEM_KB),        STATS(VM_SWAP_KB),
    STATS(VM_LOCKED_KB),        STATS(VM_HWM_KB),
    STATS(SMR_RSS_KB),          STATS(SMR_PSS_KB),
    STATS(SMR_PSS_ANON_KB),     STATS(SMR_PSS_FILE_KB),
    STATS(SMR_PSS_SHMEM_KB),    STATS(SMR_SWAP_PSS_KB),
    STATS(OOM_SCORE_ADJ),       STATS(RUNTIME_USER_MODE),
    STATS(RUNTIME_KERNEL_MODE), STATS(DMABUF_RSS_KB)};

/* The kernel's names of the values before ST_OOM_SCORE_ADJ. */
static const char* const kNames[] = {
    "VmSize",   "VmRSS",    "RssAnon",   "RssFile", "RssShmem",
    "VmSwap",   "VmLck",    "VmHWM",     "Rss",     "Pss",
    "Pss_Anon", "Pss_File", "Pss_Shmem", "SwapPss"};

/* Removes the name from a line "name: rest".  Returns false if there is
 * none. */
static bool take_name(struct st_text* line, struct st_text* name) {
  const char* colon = memchr(line->at, ':', st_text_size(*line));
  if (!colon)
    return false;
  *name = (struct st_text){line->at, colon};
  line->at = colon + 1;
  return true;
}

static void add_size(struct st_text name, struct st_text rest, unsigned first,
                     unsigned end, struct st_process_values* values) {
  uint64_t kb;
  for (unsigned i = first; i < end; i++) {
    if (st_text_is(name, kNames[i])) {
      if (st_text_u64(&rest, &kb))
        st_process_set(values, i, kb);
      return;
    }
  }
}

static uint64_t first_number(struct st_text rest, uint64_t limit) {
  uint64_t value = 0;
  st_text_u64(&rest, &value);
  return value < limit ? value : limit;
}

static void add_entry(struct st_text name, struct st_text rest,
                      struct st_status* s) {
  uint64_t own;
  if (st_text_is(name, "Name")) {
    st_text_skip(&rest, "\t");
    s->name = rest;
  } else if (st_text_is(name, "Tgid")) {
    s->tgid = first_number(rest, kMaxPid);
  } else if (st_text_is(name, "PPid")) {
    s->ppid = first_number(rest, kMaxPid);
  } else if (st_text_is(name, "Uid")) {
    s->uid = first_number(rest, UINT32_MAX);
  } else if (st_text_is(name, "Threads")) {
    s->threads = first_number(rest, kMaxPid);
  } else if (st_text_is(name, "Kthread")) {
    s->has_kthread = true;
    s->kthread = first_number(rest, UINT32_MAX);
  } else if (st_text_is(name, "NSpid") && st_text_u64(&rest, &own)) {
    s->inner_ids = rest;
  }
}

void st_parse_status(struct st_text text, struct st_status* status,
                     struct st_process_values* values) {
  struct st_text line, name;
  *status = (struct st_status){.name = st_text_of(NULL, 0),
                               .inner_ids = st_text_of(NULL, 0)};
  bool is_last = false;
  while (!is_last && st_text_line(&text, &line)) {
    if (!take_name(&line, &name))
      continue;
    is_last = st_text_is(name, "Threads");
    bool is_size =
        st_text_size(name) > 1 && (*name.at == 'V' || *name.at == 'R');
    if (!is_size)
      add_entry(name, line, status);
    else if (values)
      add_size(name, line, 0, ST_SMAPS_FIRST, values);
  }
}

void st_parse_smaps(struct st_text text, struct st_process_values* values) {
  struct st_text line, name;
  while (st_text_line(&text, &line)) {
    if (take_name(&line, &name))
      add_size(name, line, ST_SMAPS_FIRST, ST_OOM_SCORE_ADJ, values);
  }
}

/* Returns where a word of `stat` is stored, or NULL; the words after the name are
 * numbered from 0. */
static uint64_t* stat_value(struct st_process_stat* stat, int word) {
  switch (word) {
    case 1:
      return &stat->ppid;
    case 6:
      return &stat->flags;
    case 11:
      return &stat->user;
    case 12:
      return &stat->kernel;
    case 19:
      return &stat->start;
    default:
      return NULL;
  }
}

bool st_parse_stat(struct st_text text, struct st_process_stat* stat) {
  const char* name = memchr(text.at, '(', st_text_size(text));
  const char* end = memrchr(text.at, ')', st_text_size(text));
  if (!name || !end || end < name)
    return false;
  stat->name = (struct st_text){name + 1, end};
  struct st_text rest = {end + 1, text.end}, word, line;
  if (!st_text_line(&rest, &line))
    return false;
  for (int i = 0; i < 20; i++) {
    uint64_t* value = stat_value(stat, i);
    if (value ? !st_text_u64(&line, value) : !st_text_word(&line, &word))
      return false;
  }
  return true;
}

bool st_parse_number(struct st_text text, int64_t* value) {
  struct st_text line, rest;
  uint64_t v;
  if (!st_text_line(&text, &line) || text.at < text.end)
    return false;
  bool is_negative = st_text_skip(&line, "-");
  if (!st_text_u64(&line, &v) || v > INT64_MAX || st_text_word(&line, &rest))
    return false;
  *value = is_negative ? -(int64_t)v : (int64_t)v;
  return true;
}

static void append_text(struct st_message* m, uint32_t field,
                        struct st_text text) {
  st_message_append_bytes(m, field, text.at, st_text_size(text));
}

static void append_ids(struct st_message* m, uint32_t field,
                       struct st_text ids) {
  uint64_t id;
  while (st_text_u64(&ids, &id))
    st_message_append_varint(m, field, id < kMaxPid ? id : kMaxPid);
}

/* Writes the words of a command line, which end with NULs.  Empty words are
 * left out. */
static void append_words(struct st_message* process, struct st_text cmdline) {
  while (cmdline.at < cmdline.end) {
    const char* end = memchr(cmdline.at, 0, st_text_size(cmdline));
    struct st_text word = {cmdline.at, end ? end : cmdline.end};
    if (word.at < word.end)
      append_text(process, PROCESS(CMDLINE), word);
    cmdline.at = word.end + (end != NULL);
  }
}

void st_write_process(const struct st_status* status, struct st_text cmdline,
                      struct st_message* process) {
  bool is_named = cmdline.at < cmdline.end;
  st_message_append_varint(process, PROCESS(PID), status->tgid);
  st_message_append_varint(process, PROCESS(PPID), status->ppid);
  if (is_named)
    append_words(process, cmdline);
  else
    append_text(process, PROCESS(CMDLINE), status->name);
  /* The field is signed. */
  st_message_append_varint(process, PROCESS(UID),
                           (uint64_t)(int64_t)(int32_t)status->uid);
  append_ids(process, PROCESS(NSPID), status->inner_ids);
  if (!is_named)
    st_message_append_varint(process, PROCESS(CMDLINE_IS_COMM), 1);
  if (status->has_kthread)
    st_message_append_varint(process, PROCESS(IS_KTHREAD),
                             status->kthread == 1);
}

void st_write_thread(const struct st_status* status, int32_t tid, bool named,
                     struct st_message* thread) {
  st_message_append_varint(thread, THREAD(TID), (uint64_t)tid);
  st_message_append_varint(thread, THREAD(TGID), status->tgid);
  if (named)
    append_text(thread, THREAD(NAME), status->name);
  append_ids(thread, THREAD(NSTID), status->inner_ids);
}
