/* Print filter: which texts of the event ftrace/print are recorded.
 *
 *   rule    { prefix }          the text begins with the prefix
 *   rule    { type, prefix }    the text is "TYPE|digits|PREFIX...", as programs
 *                               write it to mark slices and counters
 *
 * The first rule that matches decides; a text that no rule matches is allowed.
 * Source: the comments of FtraceConfig.PrintFilter in Perfetto's protos.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_print_rule {
  /* NULL if the rule has a prefix only. */
  const uint8_t* type;
  const uint8_t* prefix;
  size_t type_size, prefix_size;
  bool allow;
};

struct st_print_filter {
  const struct st_print_rule* rules;
  size_t count;
};

bool st_print_filter_allows(const struct st_print_filter* filter,
                            const uint8_t* text, size_t size);
