// Declares this ISA's kernels to its own sources.
#pragma once
#include "model/ops/kernels.hpp"

namespace troupe::TROUPE_ISA {

void matmul(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
/// With inputs in 16 bits.
void fine_matmul(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
/// With inputs in tall tiles, where there is AMX.
void tiled_matmul(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
std::int64_t spin_tiles(std::int64_t);
void shrink(const low_rank_args&);
void expand(const low_rank_args&, std::int64_t first_block, std::int64_t last_block);
void attend(const attention_args&);
void store_kv(const store_kv_args&);
void convolve(const convolve_args&);
void short_convolve(const short_convolution_args&);
void delta_rule(const delta_args&);
void state_space(const delta_args&);
void delta_shares(float*, float*, const float*, const float*, std::int64_t);
void state_space_shares(float*, float*, const float*, const float*, std::int64_t);
void unit_norm(float*, std::int64_t, float, float);
void open_gate(const float*, std::int64_t, float*);
void rms_norm(const float*, const float*, std::int64_t, float, float*);
void layer_norm(const float*, const float*, const float*, std::int64_t, float, float*);
void swiglu(const float*, const float*, std::int64_t, float*);
void clamped_swiglu(const float*, const float*, std::int64_t, float, float, float*);
void geglu(const float*, const float*, std::int64_t, float*);
void gelu_tanh(const float*, std::int64_t, float*);
void squared_relu(const float*, std::int64_t, float*);
void add(const float*, std::int64_t, float*);
void multiply(float*, std::int64_t, float);
void cap(float*, std::int64_t, float);
void rotate(float*, std::int64_t, std::int64_t, std::int64_t, const float*, const float*);
void quantize(const float*, std::int64_t, const quantized_row&);
float exponentials(const float*, std::int64_t, float, float*);
std::int64_t spin_int8(std::int64_t);
std::int64_t spin_int4(std::int64_t);
std::int64_t spin_fma(std::int64_t);
std::int64_t read(const std::byte*, std::int64_t);

}  // namespace troupe::TROUPE_ISA
