#include "model/formats/hf/hf_values.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

std::int64_t size_from(std::int64_t least, const json_fields<nlohmann::json>& config, std::string_view key,
                       std::int64_t otherwise) {
  const auto value = config.integer(key).value_or(otherwise);
  if (value < least || value > std::int64_t{1} << 31) refuse("{}: \"{}\" is {}", config.where(), key, value);
  return value;
}

}  // namespace

std::int64_t positive(const json_fields<nlohmann::json>& config, std::string_view key, std::int64_t otherwise) {
  return size_from(1, config, key, otherwise);
}

std::int64_t size_or_none(const json_fields<nlohmann::json>& config, std::string_view key) {
  return size_from(0, config, key, 0);
}

float factor(const json_fields<nlohmann::json>& config, std::string_view key, double otherwise) {
  return static_cast<float>(config.number(key).value_or(otherwise));
}

void refuse_unless(const json_fields<nlohmann::json>& config, std::string_view key, bool wanted) {
  if (config.boolean(key).value_or(wanted) != wanted)
    refuse("{}: \"{}\" is {}, which is not supported", config.where(), key, !wanted);
}

}  // namespace troupe::detail
