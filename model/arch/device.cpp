#include "model/arch/device.hpp"

#include <fstream>

#include "base/error.hpp"
#include "model/arch/gpu.hpp"

namespace troupe {

void check_device(device_id device, std::string_view where) {
  if (device.is_cpu()) return;
  if (const std::string fault = gpu_fault(device.gpu); !fault.empty()) refuse("{}: {}", where, fault);
}

std::optional<std::int64_t> free_memory(device_id device) {
  if (!device.is_cpu()) return free_gpu_memory(device.gpu);
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (std::int64_t kilobytes = 0; file >> key >> kilobytes; file.ignore(64, '\n'))
    if (key == "MemAvailable:") return kilobytes * 1024;
  return std::nullopt;
}

}  // namespace troupe
