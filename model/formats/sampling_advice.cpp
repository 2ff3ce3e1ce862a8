#include "model/formats/sampling_advice.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

using fields = detail::json_fields<nlohmann::json>;

std::optional<double> advised(const fields& from, std::string_view key, double least, double most) {
  const auto value = from.number(key);
  if (value && !(*value >= least && *value <= most))
    refuse("{}: {} is {}: it lies between {} and {}", from.where(), key, *value, least, most);
  return value;
}

}  // namespace

sampling_advice read_sampling_advice(const std::filesystem::path& model) {
  const auto path = model / "generation_config.json";
  sampling_advice advice;
  if (!path_exists(path)) return advice;
  const auto object = detail::read_json(path, most_bytes);
  const fields from(object, path.string());
  advice.temperature = advised(from, "temperature", 0, 100);
  advice.top_p = advised(from, "top_p", 1e-6, 1);
  advice.min_p = advised(from, "min_p", 0, 1);
  advice.repetition_penalty = advised(from, "repetition_penalty", 1e-3, 100);
  if (const auto k = from.integer("top_k"); k && advised(from, "top_k", -1, 1e9))
    advice.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(*k, 0));
  return advice;
}

}  // namespace troupe
