#include "model/arch/device.hpp"

#include <algorithm>
#include <fstream>

#include "base/cgroup_memory.hpp"
#include "base/error.hpp"
#include "model/arch/gpu.hpp"

namespace troupe {
namespace {

std::optional<std::int64_t> bytes_on_machine(std::string_view wanted) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (std::int64_t kilobytes = 0; file >> key >> kilobytes; file.ignore(64, '\n'))
    if (key == wanted) return kilobytes * 1024;
  return std::nullopt;
}

std::optional<std::int64_t> less_of(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

}  // namespace

void check_device(device_id device, std::string_view where) {
  if (device.is_cpu()) return;
  if (const std::string fault = gpu_fault(device.gpu); !fault.empty()) refuse("{}: {}", where, fault);
}

std::optional<std::int64_t> free_memory(device_id device) {
  if (!device.is_cpu()) return free_gpu_memory(device.gpu);
  return less_of(bytes_on_machine("MemAvailable:"), free_in_cgroups());
}

std::optional<std::int64_t> machine_memory() {
  return less_of(bytes_on_machine("MemTotal:"), limit_of_cgroups());
}

void leave_device(device_id device) {
  if (!device.is_cpu()) leave_gpu(device.gpu);
}

}  // namespace troupe
