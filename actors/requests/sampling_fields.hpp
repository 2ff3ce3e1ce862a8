// The fields of a request that say how tokens are chosen, in OpenAI's names and vLLM's. For HTTP and for lines of jobs.
#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "model/engine/sampling/sampling_params.hpp"

namespace troupe {

class request_fields;

/// None if it is to be drawn, for which vLLM and llama.cpp also have -1.
std::optional<std::uint64_t> seed_of(const request_fields& from);
/// Changes in `to` what the request says. How much is answered and reported is left to the caller. Throws field_error.
void read_sampling(const request_fields& from, sampling_params& to);
/// What a line of a job may say of them: so much is read again, and besides how much is answered and reported.
nlohmann::ordered_json json_of(const sampling_params& params);

}  // namespace troupe
