// Errors as Anthropic's API has them, made of OpenAI's.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_exchange.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// Whether Anthropic's API is asked: /v1/messages, and what is below it.
bool is_for_messages(const http_request& request);

/// {"type":"error","error":{"type","message"}} of what error_json() wrote. With a request's id, "request_id" follows.
std::string message_error(std::string_view error, std::string_view request_id = {});

/// `to`, where errors are answered in that form, whoever found them, and each answer has its id as `request-id`.
std::shared_ptr<http_exchange> message_exchange(std::shared_ptr<http_exchange> to);

}  // namespace troupe
