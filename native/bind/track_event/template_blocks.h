/* Fills the template cache: encodes the constant part of a template's events
 * with the interned ids of one sequence.
 *
 *   block    category_iid, name_iid, debug_annotations of all constants
 */
#pragma once

#include "bind/track_event/event_template_object.h"
#include "bind/track_event/thread_sequence.h"

/* Encodes the block of a template.  The sequence has interned the template's
 * names before. */
void remember_template(struct thread_sequence* s,
                       const EventTemplateObject* template);
