#pragma once
#include <cstdint>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// How a file orders the rows of queries or keys where its positions turn neighbours, the numbers 2 i and 2 i + 1 of a
/// head. Here the numbers i and i + turned / 2 turn together.
struct neighbour_heads {
  std::int64_t dim = 0;     ///< of a head; 0: the file's order is ours
  std::int64_t turned = 0;  ///< how much of it turns, from its beginning

  /// Where the file has our row.
  std::int64_t file_row(std::int64_t row) const {
    if (dim == 0) return row;
    const std::int64_t head = row / dim, within = row % dim, half = turned / 2;
    return within < turned ? head * dim + within % half * 2 + within / half : row;
  }
  /// Rows [outs, width] as the file has them, in our order, and back.
  std::vector<float> in_our_order(std::vector<float> rows, std::int64_t width) const;
  std::vector<float> in_file_order(std::vector<float> rows, std::int64_t width) const;
};

/// Of the model's class in Hugging Face's library, and so of PEFT's factors for its layers.
neighbour_heads heads_in_class(const model_config& config, linear_kind kind);

}  // namespace troupe
