#include "cli/version.hpp"

#include <dlfcn.h>

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/program_id.hpp"
#include "model/arch/gpu.hpp"
#include "model/ops/isa.hpp"
#include "model/ops/kernels.hpp"
#include "transport/collective/nccl_ranks.hpp"

namespace troupe {
namespace {

#ifdef __clang__
constexpr const char* compiler = "Clang " __clang_version__;
#else
constexpr const char* compiler = "GCC " __VERSION__;
#endif

std::vector<std::string_view> available_isas() {
  std::vector<std::string_view> names;
  for (const kernel_table* table : available_kernels()) names.emplace_back(table->isa);
  return names;
}

const char* found(const char* library) {
  void* opened = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) return "not found";
  ::dlclose(opened);
  return "found";
}

}  // namespace

std::string version_text() {
  const std::string build = TROUPE_BUILD_TYPE;
  return fmt::format(
      "troupe {}\n"
      "program          {}\n"
      "compiler         {}\n"
      "build type       {}\n"
      "instruction set  {} (this processor has {})\n"
      "CUDA             {}; the driver (libcuda) was {}\n"
      "NCCL             {} this build; libnccl was {}",
      TROUPE_VERSION, program_id(), compiler, build.empty() ? "none" : build, kernels().isa,
      fmt::join(available_isas(), ", "), gpu_support(), found("libcuda.so.1"), has_nccl() ? "in" : "not in",
      found("libnccl.so.2"));
}

}  // namespace troupe
