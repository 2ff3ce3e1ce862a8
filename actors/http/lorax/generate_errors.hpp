// Errors as LoRAX's API has them, made of OpenAI's.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_exchange.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// Whether this API is asked.
bool is_for_generation(const http_request& request);
/// {"error","error_type"} of what error_json() wrote.
std::string generation_error(std::string_view error);
/// `to`, where errors are answered in that form, whoever found them.
std::shared_ptr<http_exchange> generation_exchange(std::shared_ptr<http_exchange> to);

}  // namespace troupe
