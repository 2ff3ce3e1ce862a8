#include "model/ops/isa.hpp"

#include <algorithm>
#include <cstdlib>

#include <cpuid.h>

#include "base/error.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

namespace generic {
extern const kernel_table table;
}
namespace avx2 {
extern const kernel_table table;
}
namespace avx_vnni {
extern const kernel_table table;
}
namespace avx512 {
extern const kernel_table table;
}

namespace {

/// clang 14 has no name for it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

/// Compilers that we support have no name for it.
bool has_avx_vnni() {
  constexpr unsigned bit = 1 << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit);
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

struct instruction_set {
  bool (*there)();
  const kernel_table* kernels;
};
/// The slowest first.
constexpr instruction_set instruction_sets[] = {{[] { return true; }, &generic::table},
                                                {has_avx2, &avx2::table},
                                                {has_avx_vnni, &avx_vnni::table},
                                                {has_avx512, &avx512::table}};

bool is_known(std::string_view isa) {
  return std::ranges::any_of(instruction_sets, [&](const auto& set) { return set.kernels->isa == isa; });
}

const kernel_table& choose() {
  if (const char* wanted = std::getenv("TROUPE_ISA"); wanted && *wanted) {
    if (!is_known(wanted))
      refuse("TROUPE_ISA={}: unknown instruction set: use generic, avx2, avx_vnni or avx512", wanted);
    if (const auto* table = kernels_of(wanted)) return *table;
    refuse("TROUPE_ISA={}: this processor lacks it: unset TROUPE_ISA or choose a lower one", wanted);
  }
  return *available_kernels().back();
}

}  // namespace

const kernel_table& kernels() {
  static const kernel_table& chosen = choose();
  return chosen;
}

std::vector<const kernel_table*> available_kernels() {
  std::vector<const kernel_table*> tables;
  for (const instruction_set& set : instruction_sets)
    if (set.there()) tables.push_back(set.kernels);
  return tables;
}

const kernel_table* kernels_of(std::string_view isa) {
  for (const kernel_table* table : available_kernels())
    if (table->isa == isa) return table;
  return nullptr;
}

}  // namespace troupe
