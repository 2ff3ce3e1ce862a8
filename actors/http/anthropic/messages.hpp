#pragma once
#include "actors/http/chats/chat_order.hpp"

namespace troupe {

/// The chat that a request of /v1/messages asks for. Throws like read_order, by this API's names of fields.
chat_order read_message_order(const request_fields& from, const served_model& served);

}  // namespace troupe
