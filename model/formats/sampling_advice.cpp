#include "model/formats/sampling_advice.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_bytes = 1 << 20;
constexpr double least_top_p = 1e-6;

template <class Number>
void check(std::string_view name, std::optional<Number> value, Number least, Number most, const std::string& where) {
  if (value && !(*value >= least && *value <= most))
    refuse("{}: {} is {}, but lies between {} and {}: correct or remove it", where, name, *value, least, most);
}

/// Some files say 0, or less than counts, for a top_p that leaves the likeliest token alone. The least that counts is a
/// little less in GGUF files, which have floats.
sampling_advice checked(sampling_advice advice, const std::string& where) {
  if (advice.top_p >= 0.0 && *advice.top_p < least_top_p) advice.top_p = least_top_p;
  check("temperature", advice.temperature, 0.0, 100.0, where);
  check("top_p", advice.top_p, least_top_p, 1.0, where);
  check("min_p", advice.min_p, 0.0, 1.0, where);
  check("repetition_penalty", advice.repetition_penalty, 1e-3, 100.0, where);
  return advice;
}

/// Files say -1 for all tokens.
std::optional<std::int32_t> checked_top_k(std::optional<std::int64_t> k, const std::string& where) {
  check<std::int64_t>("top_k", k, -1, 1'000'000'000, where);
  return k ? std::optional(static_cast<std::int32_t>(std::max<std::int64_t>(*k, 0))) : std::nullopt;
}

sampling_advice advice_in_json(const std::filesystem::path& path) {
  const auto object = detail::read_json(path, most_bytes);
  const detail::json_fields from(object, path.string());
  return {.temperature = from.number("temperature"),
          .top_p = from.number("top_p"),
          .min_p = from.number("min_p"),
          .repetition_penalty = from.number("repetition_penalty"),
          .top_k = checked_top_k(from.integer("top_k"), from.where())};
}

/// Converters put there what generation_config.json said.
sampling_advice advice_in_gguf(const gguf_file& from) {
  return {.temperature = from.get<double>("general.sampling.temp"),
          .top_p = from.get<double>("general.sampling.top_p"),
          .min_p = from.get<double>("general.sampling.min_p"),
          .repetition_penalty = from.get<double>("general.sampling.penalty_repeat"),
          .top_k = checked_top_k(from.get<std::int64_t>("general.sampling.top_k"), from.name)};
}

}  // namespace

sampling_advice read_sampling_advice(const std::filesystem::path& model) {
  if (const auto file = model / "generation_config.json"; path_exists(file))
    return checked(advice_in_json(file), file.string());
  if (const auto metadata = find_gguf_metadata(model)) return checked(advice_in_gguf(*metadata), metadata->name);
  return {};
}

}  // namespace troupe
