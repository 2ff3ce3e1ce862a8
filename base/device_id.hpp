#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// What computes: the processor, or one GPU by its number.
struct device_id {
  int gpu = -1;  ///< -1: the processor

  bool is_cpu() const { return gpu < 0; }
  bool operator==(const device_id&) const = default;
};

/// "cpu", "cuda:0", "cuda:1" …; nothing where it is none of these.
std::optional<device_id> device_from_name(std::string_view name);
std::string name_of(device_id device);

}  // namespace troupe
