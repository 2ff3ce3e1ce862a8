#pragma once
#include <span>

#include <nlohmann/json_fwd.hpp>

#include "model/engine/sampling/sampler.hpp"

namespace troupe {

/// [{"token","logprob","top":[{"token","logprob"}…]}…]: the form of our own answers, on the command line and in jobs.
nlohmann::ordered_json own_logprobs_json(std::span<const sampled_token> details);

}  // namespace troupe
