/* The Python type Category: switches groups of events on and off.
 *
 * One object per name, which is never freed: making a category again returns
 * the same object.  The client is called for each new category and sets the
 * bits of the slots that record it.
 */
#pragma once

#include "bind/common/python.h"

extern PyTypeObject* st_category_type;
