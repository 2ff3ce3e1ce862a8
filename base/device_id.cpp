#include "base/device_id.hpp"

#include "base/number_in.hpp"

namespace troupe {
namespace {

constexpr std::string_view gpu_prefix = "cuda:";
constexpr int most_gpus = 64;

}  // namespace

std::optional<device_id> device_from_name(std::string_view name) {
  if (name == "cpu") return device_id{};
  if (!name.starts_with(gpu_prefix)) return std::nullopt;
  name.remove_prefix(gpu_prefix.size());
  const auto gpu = number_in<int>(name);
  if (!gpu || *gpu < 0 || *gpu >= most_gpus) return std::nullopt;
  return device_id{*gpu};
}

std::string name_of(device_id device) {
  return device.is_cpu() ? "cpu" : std::string(gpu_prefix) + std::to_string(device.gpu);
}

}  // namespace troupe
