#pragma once
#include <span>

#include "actors/http/chats/reply_reader.hpp"
#include "actors/http/own_fields.hpp"
#include "actors/http/served_model.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

class request_fields;

/// The messages of a chat in the form that templates read: texts in parts are joined, arguments of calls are objects.
/// Throws field_error.
prompt_input read_chat(const request_fields& from);
/// How many tokens the answer of a chat may have: what the context has room for, where the request does not say.
std::int64_t max_tokens_of(const request_fields& from);

/// What a chat asks for, and the reader of its answers.
struct chat_order {
  answer_order order;
  reply_reader reader;
};
/// Throws like read_order.
chat_order read_chat_order(const request_fields& from, const served_model& served);

/// Reads the chat that a request of another API was turned into; errors name that API's fields.
chat_order read_as_chat(const request_fields& chat, const served_model& served, std::span<const own_field> fields);

}  // namespace troupe
