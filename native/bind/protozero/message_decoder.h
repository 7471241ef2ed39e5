/* The Python types that read messages: Decoder, DecodedField, generated
 * decoders, Selector, Tokenizer. */
#ifndef STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_
#define STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_

#include "bind/protozero/byte_range.h"
#include "core/decoder.h"

/* A field of a range. */
PyObject* decoded_field_new(const struct byte_range* range,
                            const struct st_field* field);

/* Takes over the range. */
PyObject* decoder_new_for(struct byte_range range);

/* The row of a message for a Selector; NULL: exception set. */
bool is_selector(PyObject* object);
PyObject* selector_row(PyObject* selector, const uint8_t* data, size_t size);

int add_decoded_field_type(PyObject* module);
int add_message_reader(PyObject* module);
int add_selector_type(PyObject* module);
int add_tokenizer_type(PyObject* module);
int add_typed_decoder_types(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_ */
