// Compiled once per ISA.
#include "model/ops/kernels_isa.hpp"

#define TROUPE_TEXT(x) #x
#define TROUPE_NAME(x) TROUPE_TEXT(x)

namespace troupe::TROUPE_ISA {

extern const kernel_table table;
const kernel_table table{TROUPE_NAME(TROUPE_ISA),
                         matmul,
                         shrink,
                         expand,
                         attend,
                         store_kv,
                         rms_norm,
                         layer_norm,
                         swiglu,
                         gelu_tanh,
                         add,
                         rotate,
                         quantize,
                         exponentials,
                         spin_int8,
                         spin_fma,
                         read};

}  // namespace troupe::TROUPE_ISA
