#pragma once
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/formats/hf/hf_own_fields.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// Where a mixture's config.json says what its experts are, and what it may leave out.
struct mixture_defaults {
  std::string_view key = {};  // of the number of experts; empty: the family has none
  std::int64_t experts = 0;
  std::string_view taken_key = "num_experts_per_tok";
  std::int64_t taken = 0;
  std::int64_t ffn = 0;  // of moe_intermediate_size; 0: intermediate_size is theirs
  std::int64_t shared_ffn = 0;
  bool asks_for_whole_shares = false;  // by norm_topk_prob; else they are whole
  bool whole_shares = false;           // where it does not say
  std::string_view dense_key = {};     // of the number of first layers that have no experts
  std::int64_t dense_layers = 0;
  std::string_view step_key = "decoder_sparse_step";  // every so many-th of the others has experts
};

/// Which layers have a window where config.json names one and does not list them. "max_window_layers" is the bound.
enum class window_layers : std::uint8_t { none, all, even, even_below_bound, from_bound };

/// The windows of families whose layers differ in nothing else.
struct window_defaults {
  window_layers which = window_layers::none;
  std::int64_t size = 0;  // where the file gives none; 0: no window
  bool by_flag = false;   // only with "use_sliding_window"
  std::int64_t bound = 0;
  bool in_all_layers = false;  // whatever "layer_types" says, which its class does not read
};

/// What config.json may leave out, per family, as Hugging Face's classes fill it in, and who reads what its files alone
/// say.
struct family_defaults {
  std::string_view name;
  std::string_view type;  // "model_type" in the file
  std::string_view architecture;
  std::string_view other_architecture = {};  // that means the same
  std::int64_t vocab;
  std::int64_t hidden = 4096, layers = 32, heads = 32;  // as most of them have it
  std::int64_t kv_heads = 0;                            // 0: as many as heads
  std::int64_t head_dim = 0;                            // 0: hidden / heads
  std::int64_t ffn = 0;                                 // 0: four times hidden
  std::int64_t context;
  double norm_eps = 1e-6;
  double theta = 10000.0;
  bool tied = false;
  std::int32_t bos = -1, eos = -1;
  bool asks_for_biases = true;  // by attention_bias; else the family decides
  bool attention_bias = false;  // where it does not say
  mixture_defaults mixture = {};
  mixer_kind mixer = mixer_kind::attention;  // of layers that do not attend
  double turned_part = 1;                    // of each head
  bool two_ropes = false;                    // one for layers that see all, and one for those with a window
  window_defaults windows = {};
  own_fields::reader* own = nullptr;
  own_layers::reader* by_layer = nullptr;
};

/// Of the model that config.json describes; refuses it where none is.
const family_defaults& family_of(const json_fields<nlohmann::json>& config);

}  // namespace troupe::detail
