#include "model/ops/isa.hpp"

#include <algorithm>
#include <cstdlib>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

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
namespace amx {
void tiled_matmul(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
std::int64_t spin_tiles(std::int64_t rounds);
}  // namespace amx

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

/// Linux lends a process the registers when it asks, which holds for all its threads.
bool has_amx() {
  constexpr unsigned tiles_and_int8 = 3 << 24;
  constexpr int ask = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tiles_and_int8) != tiles_and_int8) return false;
  static const bool is_lent = ::syscall(SYS_arch_prctl, ask, tile_data) == 0;
  return is_lent;
}

/// AVX-512, but that many rows are multiplied in tiles.
kernel_table with_tiles(kernel_table table) {
  table.isa = "amx";
  table.tiled_matmul = amx::tiled_matmul;
  table.spin_int8 = amx::spin_tiles;
  table.spin_int4 = amx::spin_tiles;
  return table;
}
const kernel_table amx_table = with_tiles(avx512::table);

struct instruction_set {
  bool (*there)();
  const kernel_table* kernels;
};
/// The slowest first.
constexpr instruction_set instruction_sets[] = {{[] { return true; }, &generic::table},
                                                {has_avx2, &avx2::table},
                                                {has_avx_vnni, &avx_vnni::table},
                                                {has_avx512, &avx512::table},
                                                {has_amx, &amx_table}};

bool is_known(std::string_view isa) {
  return std::ranges::any_of(instruction_sets, [&](const auto& set) { return set.kernels->isa == isa; });
}

const kernel_table& choose() {
  if (const char* wanted = std::getenv("TROUPE_ISA"); wanted && *wanted) {
    if (!is_known(wanted))
      refuse("TROUPE_ISA={}: unknown instruction set: use generic, avx2, avx_vnni, avx512 or amx", wanted);
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
