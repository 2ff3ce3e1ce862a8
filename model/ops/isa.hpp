#pragma once
#include <string_view>
#include <vector>

namespace troupe {

struct kernel_table;

/// The kernels for this processor: the best instruction set that it has, or the one that TROUPE_ISA names
/// (generic, avx2, avx_vnni, avx512, amx). Chosen once; throws input_error when TROUPE_ISA is unknown or the processor
/// lacks it.
const kernel_table& kernels();

/// Those that this processor can run, the slowest first.
std::vector<const kernel_table*> available_kernels();

/// The kernels of one instruction set; nullptr when the processor lacks it.
const kernel_table* kernels_of(std::string_view isa);

}  // namespace troupe
