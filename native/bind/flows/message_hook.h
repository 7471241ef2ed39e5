/* The Python types MessageHook and MessageTemplates: the native part of a tracer
 * of messages, which handles most messages without running Python.
 *
 *   hook(channel, stamp, method, kind, txid, size, handles, answer, data)
 *   hook(channel, method, kind, txid, size, handles, answer, data)
 *
 * are `sent` and `received` of the seam (stretto.base.rpc_hooks).  The
 * code between two waits of a conversation is not in the processor's caches,
 * and a few hundred lines of Python are most of what tracing adds to a call.
 *
 * The hook is made of the function that does the same for every message
 * (stretto.flows.tracer).  It handles a message if
 *   - channel.state.ids is a FlowIds of the same owner,
 *   - no event is being recorded by this thread,
 * and then counts it, if neither its method's switch nor the transport's
 * category is on; or shows it, if
 *   - its id will be known,
 *   - method.state is a MessageTemplates of the same owner that has a template
 *     for this kind, and the method's switch is on.
 * It passes all other messages on to that function, without a side effect.
 */
#ifndef STRETTO_BIND_FLOWS_MESSAGE_HOOK_H_
#define STRETTO_BIND_FLOWS_MESSAGE_HOOK_H_

#include "bind/common/python.h"

/* Adds the types to the module.  -1: an exception is set. */
int st_bind_add_message_hook(PyObject* module);

#endif /* STRETTO_BIND_FLOWS_MESSAGE_HOOK_H_ */
