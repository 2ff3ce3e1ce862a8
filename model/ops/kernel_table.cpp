// Compiled once per ISA.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

#define TROUPE_TEXT(x) #x
#define TROUPE_NAME(x) TROUPE_TEXT(x)

namespace troupe::TROUPE_ISA {

extern const kernel_table table;
const kernel_table table{.isa = TROUPE_NAME(TROUPE_ISA),
                         .wide_inputs = wide_inputs,
                         .matmul = matmul,
                         .tiled_matmul = nullptr,
                         .shrink = shrink,
                         .expand = expand,
                         .attend = attend,
                         .store_kv = store_kv,
                         .convolve = convolve,
                         .short_convolve = short_convolve,
                         .delta_rule = delta_rule,
                         .state_space = state_space,
                         .delta_shares = delta_shares,
                         .state_space_shares = state_space_shares,
                         .unit_norm = unit_norm,
                         .open_gate = open_gate,
                         .rms_norm = rms_norm,
                         .layer_norm = layer_norm,
                         .swiglu = swiglu,
                         .geglu = geglu,
                         .clamped_swiglu = clamped_swiglu,
                         .gelu_tanh = gelu_tanh,
                         .squared_relu = squared_relu,
                         .add = add,
                         .multiply = multiply,
                         .cap = cap,
                         .rotate = rotate,
                         .quantize = quantize,
                         .exponentials = exponentials,
                         .spin_int8 = spin_int8,
                         .spin_int4 = spin_int4,
                         .spin_fma = spin_fma,
                         .read = read};

}  // namespace troupe::TROUPE_ISA
