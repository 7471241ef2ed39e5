#include "probes/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  FIRST_BYTES = 1 << 23,
  MAX_BYTES = 1 << 28,
  /* An address this far behind the start of a function is not in it, but data
   * or a module without a symbol there. */
  MAX_FUNCTION = 1 << 20
};

static const char* hexadecimal(const char* at, const char* end,
                               uint64_t* value) {
  *value = 0;
  for (; at < end; at++) {
    char c = *at;
    unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                            : 16;
    if (digit == 16)
      break;
    *value = *value << 4 | digit;
  }
  return at;
}

/* Adds the symbol of a line, and ends its name with a NUL. */
static void add_line(struct st_symbol_table* t, char* line, char* end) {
  uint64_t address;
  const char* at = hexadecimal(line, end, &address);
  if (end - at < 4 || at[0] != ' ' || !memchr("tTwW", at[1], 4) ||
      at[2] != ' ' || !address)
    return;
  char* name = line + (at + 3 - line);
  char* tab = memchr(name, '\t', (size_t)(end - name));
  *(tab ? tab : end) = 0;
  st_symbol_table_add(t, address, MAX_FUNCTION, (size_t)(name - t->text));
}

void st_kernel_symbols_parse(struct st_symbol_table* t, char* text,
                             size_t size) {
  t->text = text;
  t->text_size = size;
  if (!size)
    return;
  text[size - 1] = 0;
  char* end = text + size - 1;
  while (text < end) {
    char* line_end = memchr(text, '\n', (size_t)(end - text));
    line_end = line_end ? line_end : end;
    add_line(t, text, line_end);
    text = line_end + 1;
  }
  st_symbol_table_sort(t);
}

/* Reads a file of unknown size.  Returns NULL with errno set on failure. */
static char* read_all(int fd, size_t* size) {
  size_t capacity = FIRST_BYTES;
  char* text = malloc(capacity);
  ssize_t n = 1;
  for (*size = 0; text && n > 0 && *size < MAX_BYTES; *size += (size_t)n) {
    if (*size == capacity) {
      char* grown = realloc(text, capacity *= 2);
      if (!grown)
        break;
      text = grown;
    }
    n = read(fd, text + *size, capacity - *size);
    if (n < 0) {
      free(text);
      return NULL;
    }
  }
  return text;
}

bool st_kernel_symbols_read(struct st_symbol_table* t, const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  size_t size;
  char* text = read_all(fd, &size);
  int error = errno;
  close(fd);
  errno = error;
  if (text)
    st_kernel_symbols_parse(t, text, size);
  return text;
}
