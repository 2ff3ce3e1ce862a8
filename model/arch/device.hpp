#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/device_id.hpp"

namespace troupe {

/// Throws input_error where this build or this machine has no such device; `where` says who asked.
void check_device(device_id device, std::string_view where);
/// Bytes that are free for weights and caches, on the machine and within what its control groups allow; nothing where
/// the system does not say.
std::optional<std::int64_t> free_memory(device_id device);
/// Bytes of memory that this machine has, or its control groups allow; nothing where the system does not say.
std::optional<std::int64_t> machine_memory();
/// Asking a GPU for its free memory opens it, which takes some hundred MiB there until the process ends, and the whole
/// GPU where only one process may have it. This gives that back, and all else that the process has on the GPU.
void leave_device(device_id device);

}  // namespace troupe
