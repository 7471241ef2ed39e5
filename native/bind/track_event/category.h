/* The Python type Category: switches groups of events on and off.
 *
 * There is one object for each name: making a category again returns the same
 * object. It is never freed. For each new category a Python hook of the client
 * is called, which sets the bits of the slots that record the category.
 */
#pragma once

#include "bind/common/python.h"

extern PyTypeObject* st_category_type;

/* Disables all categories, without a report. */
void st_categories_disable(void);

/* Disables all categories but those that are enabled in a slot, which are
 * enabled in the first slot instead.  Returns false and changes nothing if a
 * category is enabled, but not in this slot. */
bool st_categories_keep_only(int slot);
