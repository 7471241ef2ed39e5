/* The Python type Tokenizer: splits a stream of bytes into messages.
 *
 * Each message is returned as bytes, as the row of a Selector, or as what
 * another callable makes of its bytes.  Making any of these may run Python
 * code through the garbage collector; `busy` keeps that code from advancing
 * the tokenizer.
 */
#ifndef STRETTO_BIND_PROTOZERO_TOKENIZER_H_
#define STRETTO_BIND_PROTOZERO_TOKENIZER_H_

#include "bind/common/python.h"

/* Adds the type to the module.  -1: an exception is set. */
int st_bind_add_tokenizer(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_TOKENIZER_H_ */
