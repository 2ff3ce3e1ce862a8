#include "base/device_id.hpp"

#include <charconv>

namespace troupe {
namespace {

constexpr std::string_view gpu_prefix = "cuda:";
constexpr int most_gpus = 64;

}  // namespace

std::optional<device_id> device_from_name(std::string_view name) {
  if (name == "cpu") return device_id{};
  if (!name.starts_with(gpu_prefix)) return std::nullopt;
  name.remove_prefix(gpu_prefix.size());
  device_id device;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), device.gpu);
  if (error != std::errc() || end != name.data() + name.size() || device.gpu < 0 || device.gpu >= most_gpus)
    return std::nullopt;
  return device;
}

std::string name_of(device_id device) {
  return device.is_cpu() ? "cpu" : std::string(gpu_prefix) + std::to_string(device.gpu);
}

}  // namespace troupe
