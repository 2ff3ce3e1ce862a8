// The kernels that a test can run on this processor.
#pragma once
#include <vector>

#include "model/ops/isa.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

namespace avx512_stand_in {
extern const kernel_table table;
}

/// Those of each instruction set that it has, and those for AVX-512 by their stand-in (avx512_stand_in.hpp).
inline std::vector<const kernel_table*> tested_tables() {
  std::vector<const kernel_table*> tables;
  for (const char* isa : {"generic", "avx2", "avx512"})
    if (const kernel_table* table = kernels_of(isa)) tables.push_back(table);
  if (kernels_of("avx2")) tables.push_back(&avx512_stand_in::table);
  return tables;
}

}  // namespace troupe
