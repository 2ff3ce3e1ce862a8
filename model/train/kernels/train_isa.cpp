#include <string_view>

#include "model/train/kernels/train_kernels.hpp"

namespace troupe {

namespace generic {
extern const train_kernel_table train_table;
}
namespace avx2 {
extern const train_kernel_table train_table;
}
namespace avx512 {
extern const train_kernel_table train_table;
}

const train_kernel_table& train_kernels_like(const kernel_table& kernels) {
  const std::string_view isa = kernels.isa;
  if (isa == "avx512" || isa == "amx") return avx512::train_table;
  return isa == "generic" ? generic::train_table : avx2::train_table;  // they multiply floats: AVX-VNNI adds nothing
}

}  // namespace troupe
