#include "model/arch/device.hpp"

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "model/arch/cgroup_memory.hpp"
#include "model/arch/gpu.hpp"

namespace troupe {
namespace {

std::optional<std::int64_t> free_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (std::int64_t kilobytes = 0; file >> key >> kilobytes; file.ignore(64, '\n'))
    if (key == "MemAvailable:") return kilobytes * 1024;
  return std::nullopt;
}

}  // namespace

void check_device(device_id device, std::string_view where) {
  if (device.is_cpu()) return;
  if (const std::string fault = gpu_fault(device.gpu); !fault.empty()) refuse("{}: {}", where, fault);
}

std::optional<std::int64_t> free_memory(device_id device) {
  if (!device.is_cpu()) return free_gpu_memory(device.gpu);
  const auto on_machine = free_on_machine(), in_groups = free_in_cgroups();
  return on_machine && in_groups ? std::min(on_machine, in_groups) : on_machine ? on_machine : in_groups;
}

void leave_device(device_id device) {
  if (!device.is_cpu()) leave_gpu(device.gpu);
}

}  // namespace troupe
