#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "model/formats/gguf/gguf.hpp"

namespace troupe::detail {

/// What a GGUF file tells about its model only by the tensors it has. A file of metadata alone, as lies in a folder
/// that was quantized here, keeps the same under "troupe." keys.
struct gguf_facts {
  std::optional<std::int64_t> vocab_size;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  bool choice_bias = false;                ///< experts have numbers for their choice alone
  bool joined_qkv = false;                 ///< in one tensor; not kept, since packed weights are apart
  bool joined_qkvz = false;                ///< likewise, of linear attention
  bool joined_gates_and_ups = false;       ///< likewise, of gates and ups of experts
  bool lacks_values = false;               ///< some layer has keys and no values of its own
  bool layer_factors = false;              ///< layers have a number that multiplies what leaves them
  std::vector<double> frequency_divisors;  ///< longrope's long ones, where there are two kinds
  std::vector<double> short_divisors;
};

gguf_facts read_facts(const gguf_file& file);
void write_facts(const gguf_facts& facts, gguf_file& into);

}  // namespace troupe::detail
