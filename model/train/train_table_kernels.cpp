// Compiled once per ISA.
#include "model/train/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {

extern const train_kernel_table train_table;
const train_kernel_table train_table{multiply,        fill,        transpose,      turn_bytes,  rms_norm_back,
                                     layer_norm_back, swiglu_back, gelu_back,      softmax,     softmax_back,
                                     cross_entropy,   adam,        sum_of_squares, dot_product, scale,
                                     residual,        drop};

}  // namespace troupe::TROUPE_ISA
