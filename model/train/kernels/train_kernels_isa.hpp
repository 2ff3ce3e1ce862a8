// Declares this ISA's kernels of training to its own sources.
#pragma once
#include "model/train/kernels/train_kernels.hpp"

namespace troupe::TROUPE_ISA {

void multiply(const multiply_args&);
void fill(const fill_args&);
void transpose(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
void turn_bytes(const std::uint8_t*, std::int64_t, std::uint8_t*, std::int64_t);
void rms_norm_back(const float*, const float*, const float*, std::int64_t, float, float*, float*);
void layer_norm_back(const float*, const float*, const float*, std::int64_t, float, float*, float*, float*);
void swiglu_back(const float*, std::int64_t, float*, float*);
void clamped_swiglu_back(const float*, std::int64_t, float, float, float*, float*);
void geglu_back(const float*, std::int64_t, float*, float*);
void gelu_back(const float*, std::int64_t, float*);
void squared_relu_back(const float*, std::int64_t, float*);
void delta_rule_back(const delta_back_args&);
void state_space_back(const delta_back_args&);
void convolve_back(const convolve_back_args&);
void short_convolve_back(const short_convolution_back_args&);
void unit_norm_back(const float*, std::int64_t, float, float, float*);
void delta_shares_back(const delta_shares_back_args&, std::int64_t, float*, float*);
void state_space_shares_back(const delta_shares_back_args&, std::int64_t, float*, const float*);
void open_gate_back(const float*, const float*, std::int64_t, float*, float*);
void softmax(float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float, float);
void softmax_back(const float*, float*, std::int64_t, std::int64_t, float);
train_kernel_table::cross_entropy_result cross_entropy(float*, std::int64_t, std::int64_t, float);
void adam(const adam_args&, std::int64_t, const float*, float*, float*, float*);
double sum_of_squares(const float*, std::int64_t);
double dot_product(const float*, const float*, std::int64_t);
void cap_with_slopes(float*, std::int64_t, float, float, float*);
void scale(const float*, const float*, std::int64_t, float*);
void drop(const dropout_key&, std::int64_t, const float*, std::int64_t, float*);

}  // namespace troupe::TROUPE_ISA
