// Turns the body of POST /v1/messages into that of a chat that asks the same. For .cpp files only.
#pragma once
#include "actors/requests/request_fields_impl.hpp"

namespace troupe {

/// Fields that chats have, too, keep their names: sampling, the model, stream. Throws field_error.
json chat_of_message(const request_fields& from);

/// The messages of that chat: those of `messages`, behind what `system` says. Throws field_error.
json turns_of_message(const request_fields& from);

}  // namespace troupe
