/* Takes objects out of the lists of CPython's garbage collector.
 *
 * The modules of a recorder's target stay until its process ends, so no
 * collection has to visit them.  That matters most in forked children, where
 * each visit writes to an object's header and so copies its page.  `gc.freeze`
 * would exempt the program's objects, too: `__main__` exists already.  If it is
 * not visited, the interpreter's last collection calls no `__del__` of what the
 * program has left there.
 *
 *     generation 0 <-> older objects <-> first <-> ours ... <-> (new list)
 *                                             |________|
 *     exempt       <->  ours ...              goes here
 *
 * New objects are appended to the list of generation 0.  So while the collector
 * is disabled, the objects that were created since `first` follow it there.
 * The list that they are moved to belongs to no generation; an object that is
 * freed leaves it as it would leave any other.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The Python function exempt_since(first): exempts the objects that were
 * created after `first`, a list that gc.get_stats() has returned.  The collector
 * must have been disabled since, without gc.freeze(), and no other thread may
 * have run.  Returns whether it has exempted them: not if there was a
 * collection, which the list shows, nor on free-threaded builds, which have no
 * such lists. */
PyObject* st_exempt_since(PyObject* module, PyObject* first);

/* The Python function exempt_between(first, last): the same for the objects
 * that were created after `first` and before `last`, two such lists.  Both must
 * still exist.  What was created later is not exempted.  The collector may be
 * enabled by now, and gc.freeze() and gc.unfreeze() may have been called, as
 * they keep the order of objects.  Returns False if there was a collection since
 * `first`. */
PyObject* st_exempt_between(PyObject* module, PyObject* args);

/* The Python function keep_exempt(containers): makes the functions, classes and
 * modules immortal that are exempt now; with `containers` the dicts, lists and
 * tuples, too.  From CPython 3.12 on nothing counts references to immortal
 * objects.  So a forked child that uses them copies no page for it, and the end
 * of the process frees none of them.  A container may hold what has to be freed,
 * such as an open file: keep containers only if none does.  Other exempt objects
 * can still be freed: what they hold, such as a descriptor, may have to be
 * closed. */
PyObject* st_keep_exempt(PyObject* module, PyObject* containers);
