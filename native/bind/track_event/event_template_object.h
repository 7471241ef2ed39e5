/* The struct of the Python type EventTemplate (event_template.h).
 *
 * It never changes after it is made.
 */
#pragma once

#include "bind/track_event/category_object.h"

/* The largest number of values that a template has. */
enum { MAX_TEMPLATE_VALUES = 6 };

typedef struct {
  PyObject_HEAD
  /* The number of the template.  No other template ever gets this number. */
  uint64_t number;
  CategoryObject* category;
  PyObject* name; /* The name of the event, an exact str. */
  /* The constant arguments: a dict of plain values that is never changed. */
  PyObject* constants;
  unsigned count; /* The number of values that the template takes. */
  /* The names of the values: names[n] is the tuple of the first n names. */
  PyObject* names[MAX_TEMPLATE_VALUES + 1];
} EventTemplateObject;
