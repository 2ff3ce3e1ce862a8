// LoRAX's and TGI's own API: POST /generate, /generate_stream, and / for either. Their requests become completions.
#pragma once
#include <cstdint>

#include "actors/http/served_model.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

class request_fields;

/// How the whole answer is written: / has it in a list.
enum class generated_shape : std::uint8_t { object, list };
/// Throws like read_order. `stream`: whether the answer is one.
asked_answer read_generation(const request_fields& from, const served_model& served, bool stream,
                             generated_shape shape);

}  // namespace troupe
