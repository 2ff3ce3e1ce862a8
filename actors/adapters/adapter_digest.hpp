#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/sha256.hpp"

namespace troupe {

constexpr std::uint64_t largest_adapter_file = std::uint64_t{16} << 30;

/// An adapter's files, in the order in which the digest covers them: for each file what begin_adapter_file adds, then
/// its contents.
constexpr std::array<std::string_view, 2> adapter_file_names{"adapter_config.json", "adapter_model.safetensors"};

/// Marks a folder that a worker fetched and may remove; its time is that of the last use. The head's own folders have
/// none.
constexpr std::string_view fetched_mark = ".fetched";

inline void begin_adapter_file(sha256& digest, std::string_view name, std::uint64_t bytes) {
  digest.add_field(name).add(std::to_string(bytes) + ":");
}

}  // namespace troupe
