#include "actors/requests/own_logprobs_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

nlohmann::ordered_json own_logprobs_json(std::span<const sampled_token> details) {
  auto all = nlohmann::ordered_json::array();
  for (const sampled_token& each : details) {
    auto top = nlohmann::ordered_json::array();
    for (const auto& [token, logprob] : each.alternatives) top.push_back({{"token", token}, {"logprob", logprob}});
    all.push_back({{"token", each.token}, {"logprob", each.logprob.value_or(0.0f)}, {"top", std::move(top)}});
  }
  return all;
}

}  // namespace troupe
