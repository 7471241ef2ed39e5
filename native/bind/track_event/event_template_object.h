/* The object of the Python type EventTemplate (event_template.h), as the emitters
 * see it.
 *
 * It never changes after it is made.
 */
#pragma once

#include "bind/track_event/category_object.h"

/* Of values that differ between the events of one template. */
enum { MAX_TEMPLATE_VALUES = 6 };

typedef struct {
  PyObject_HEAD
  uint64_t number; /* of no other template, ever */
  CategoryObject* category;
  PyObject* name;      /* exact str */
  PyObject* constants; /* dict of plain values, unchanged since */
  unsigned count;      /* of values that differ */
  PyObject* names[MAX_TEMPLATE_VALUES + 1]; /* tuple of the first n names */
} EventTemplateObject;
