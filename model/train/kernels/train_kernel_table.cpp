// Compiled once per ISA.
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {

extern const train_kernel_table train_table;
const train_kernel_table train_table{.multiply = multiply,
                                     .fill = fill,
                                     .transpose = transpose,
                                     .turn_bytes = turn_bytes,
                                     .rms_norm_back = rms_norm_back,
                                     .layer_norm_back = layer_norm_back,
                                     .swiglu_back = swiglu_back,
                                     .clamped_swiglu_back = clamped_swiglu_back,
                                     .geglu_back = geglu_back,
                                     .gelu_back = gelu_back,
                                     .squared_relu_back = squared_relu_back,
                                     .delta_rule_back = delta_rule_back,
                                     .state_space_back = state_space_back,
                                     .convolve_back = convolve_back,
                                     .short_convolve_back = short_convolve_back,
                                     .unit_norm_back = unit_norm_back,
                                     .delta_shares_back = delta_shares_back,
                                     .state_space_shares_back = state_space_shares_back,
                                     .open_gate_back = open_gate_back,
                                     .softmax = softmax,
                                     .softmax_back = softmax_back,
                                     .cross_entropy = cross_entropy,
                                     .adam = adam,
                                     .sum_of_squares = sum_of_squares,
                                     .dot = dot_product,
                                     .cap = cap_with_slopes,
                                     .scale = scale,
                                     .drop = drop};

}  // namespace troupe::TROUPE_ISA
