// The kernels that a test can run on this processor.
#pragma once
#include <vector>

#include "model/ops/isa.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

namespace avx512_stand_in {
extern const kernel_table table;
}
namespace avx_vnni_stand_in {
extern const kernel_table table;
}
namespace amx_stand_in {
void tiled_matmul(const matmul_args&, std::int64_t first_block, std::int64_t last_block);

inline const kernel_table table = [] {
  kernel_table made = avx512_stand_in::table;
  made.isa = "amx_stand_in";
  made.tiled_matmul = tiled_matmul;
  return made;
}();
}  // namespace amx_stand_in

/// Those of each instruction set that it has, and those of others by their stand-ins (avx512_stand_in.hpp …).
inline std::vector<const kernel_table*> tested_tables() {
  std::vector<const kernel_table*> tables = available_kernels();
  if (kernels_of("avx2"))
    tables.insert(tables.end(), {&avx512_stand_in::table, &avx_vnni_stand_in::table, &amx_stand_in::table});
  return tables;
}

}  // namespace troupe
