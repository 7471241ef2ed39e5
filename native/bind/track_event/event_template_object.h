/* The struct of the Python type EventTemplate (event_template.h).
 *
 * It never changes after it is made.
 */
#pragma once

#include "bind/track_event/category_object.h"

/* Maximal number of values of one template. */
enum { MAX_TEMPLATE_VALUES = 6 };

typedef struct {
  PyObject_HEAD
  uint64_t number; /* unique; never used again */
  CategoryObject* category;
  PyObject* name;      /* a str, not of a subclass */
  PyObject* constants; /* dict of plain values; never changed */
  unsigned count;      /* number of values */
  /* names[n]: tuple of the first n names */
  PyObject* names[MAX_TEMPLATE_VALUES + 1];
} EventTemplateObject;
