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

/// Those of each instruction set that it has, and those of others by their stand-ins (avx512_stand_in.hpp …).
inline std::vector<const kernel_table*> tested_tables() {
  std::vector<const kernel_table*> tables = available_kernels();
  if (kernels_of("avx2")) tables.insert(tables.end(), {&avx512_stand_in::table, &avx_vnni_stand_in::table});
  return tables;
}

}  // namespace troupe
