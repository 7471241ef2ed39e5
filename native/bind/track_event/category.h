/* The Python type Category: switches groups of events on and off.
 *
 * There is one object for each name: making a category again returns the same
 * object. It is never freed. For each new category a Python hook of the client
 * is called, which sets the bits of the slots that record the category.
 */
#pragma once

#include "bind/common/python.h"

extern PyTypeObject* st_category_type;
