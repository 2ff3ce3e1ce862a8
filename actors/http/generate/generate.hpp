// LoRAX's and TGI's own API: POST /generate, /generate_stream, and / for either. Their requests become completions.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "actors/http/served_model.hpp"
#include "actors/requests/answer_order.hpp"
#include "transport/http/http_exchange.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

class request_fields;

/// How the whole answer is written: / has it in a list.
enum class generated_shape : std::uint8_t { object, list };
/// Throws like read_order. `stream`: whether the answer is one.
asked_answer read_generation(const request_fields& from, const served_model& served, bool stream,
                             generated_shape shape);

/// Whether this API is asked.
bool is_for_generation(const http_request& request);
/// {"error","error_type"} of what error_json() wrote.
std::string generation_error(std::string_view error);
/// `to`, where errors are answered in that form.
std::shared_ptr<http_exchange> generation_exchange(std::shared_ptr<http_exchange> to);

}  // namespace troupe
