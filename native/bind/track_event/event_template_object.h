/* The struct of the Python type EventTemplate (event_template.h).
 *
 * It never changes after it is made.
 */
#pragma once

#include "bind/track_event/category_object.h"

/* The largest number of values of one template. */
enum { MAX_TEMPLATE_VALUES = 6 };

typedef struct {
  PyObject_HEAD
  uint64_t number; /* A unique number, never used again. */
  CategoryObject* category;
  PyObject* name;      /* An exact str. */
  PyObject* constants; /* A dict of plain values; never changed. */
  unsigned count;      /* Number of values. */
  /* names[n] is the tuple of the first n names. */
  PyObject* names[MAX_TEMPLATE_VALUES + 1];
} EventTemplateObject;
