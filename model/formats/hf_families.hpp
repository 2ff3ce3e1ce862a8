#pragma once
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"

namespace troupe::detail {

/// What config.json may leave out, per family, as Hugging Face's classes fill it in.
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
};

/// Of the model that config.json describes; refuses it where none is.
const family_defaults& family_of(const json_fields<nlohmann::json>& config);

}  // namespace troupe::detail
