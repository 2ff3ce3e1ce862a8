#include "model/ops/isa.hpp"

#include <cstdlib>
#include <string>

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

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

const kernel_table& choose() {
  if (const char* wanted = std::getenv("TROUPE_ISA"); wanted && *wanted) {
    const std::string isa = wanted;
    if (isa != "generic" && isa != "avx2" && isa != "avx512")
      refuse("TROUPE_ISA={}: unknown instruction set: use generic, avx2 or avx512", isa);
    if (const auto* table = kernels_of(isa)) return *table;
    refuse("TROUPE_ISA={}: this processor lacks it: unset TROUPE_ISA or choose a lower one", isa);
  }
  if (has_avx512()) return avx512::table;
  return has_avx2() ? avx2::table : generic::table;
}

}  // namespace

const kernel_table& kernels() {
  static const kernel_table& chosen = choose();
  return chosen;
}

const kernel_table* kernels_of(std::string_view isa) {
  if (isa == "generic") return &generic::table;
  if (isa == "avx2" && has_avx2()) return &avx2::table;
  if (isa == "avx512" && has_avx512()) return &avx512::table;
  return nullptr;
}

}  // namespace troupe
