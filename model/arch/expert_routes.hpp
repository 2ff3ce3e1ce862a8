#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/formats/model_config.hpp"
#include "model/ops/compute.hpp"
#include "model/ops/kernels.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

/// Which experts the rows of a pass go through. A row's visits to its experts lie at places, one expert's places side
/// by side, so that its rows are multiplied together.
class expert_routes {
 public:
  struct group {
    std::int64_t expert;
    int first, rows;  ///< its places
  };
  struct visit {
    std::int64_t expert;
    float share;  ///< of what the expert makes
    int place = 0;
  };

  expert_routes(const model_config& config, const kernel_table& kernels);

  /// From the router's outputs for each row, and numbers of each expert: what is added for the choice
  /// (config.experts.choice_bias) and what its shares are multiplied by (config.experts.apart). A row's visits depend
  /// on its own outputs alone: the largest ones, of equal ones the first experts.
  void choose(const_float_rows scores, int rows, const float* biases = nullptr, const float* factors = nullptr);

  struct router {
    const matrix_view& w;
    const float *bias = nullptr, *choice_bias = nullptr, *factors = nullptr;
  };
  /// Makes these outputs, `scores`, of normalized rows. Serving and training both do it here, so that a row goes
  /// through the same experts in both.
  void choose(const compute& with, const router& by, const_float_rows x, int rows, float_rows scores);

  /// In the order of experts, those alone that somebody visits. Each begins at a whole tile.
  std::span<const group> groups() const { return groups_; }
  tile_shape tile() const { return tile_; }
  int places() const { return static_cast<int>(row_at_.size()); }
  /// Which row is at a place; -1: none, since a tile is not full.
  int row_at(int place) const { return row_at_[to_size(place)]; }
  /// In the order of experts, which is the order in which a row adds what they make.
  std::span<const visit> visits_of(int row) const {
    return std::span(visits_).subspan(to_size(row) * taken(), taken());
  }

  /// to += what the row's experts made at its places, as much of each as its share.
  void add_visits(int row, const_float_rows made, std::int64_t width, float* to) const;

  /// Rows of a pass that go through experts together: more take more memory, with fewer the experts are read more
  /// often.
  static constexpr int rows_together = 512;
  /// At most so many places, for passes of so many rows.
  static std::int64_t most_places(const model_config& config, std::int64_t rows);

 private:
  std::size_t taken() const { return to_size(config_.taken); }
  void choose_for(const float* scores, const float* biases, const float* factors, std::span<visit> into);
  float weigh(const float* scores);
  template <class Worth>
  std::vector<std::int64_t>::iterator keep_best_groups(const Worth& worth);
  void place_visits(int rows);

  const kernel_table& kernels_;
  const expert_config config_;
  tile_shape tile_;
  std::vector<std::int64_t> order_;
  std::vector<float> worths_;                                    ///< of one group's experts
  std::vector<std::pair<float, std::int64_t>> groups_by_worth_;  ///< minus theirs, so that the best are the least
  aligned_buffer<float> scores_, weights_;                       ///< of one row, padded
  std::vector<visit> visits_;
  std::vector<group> groups_;
  std::vector<int> row_at_;
  std::vector<int> visitors_, next_;  ///< of each expert: how many it has, and its next place
};

/// 1 / (1 + e^-x) for each of `padded` numbers, with the same bits on every processor.
void sigmoids(const kernel_table& kernels, const float* x, std::int64_t padded, float* out);
/// How much each row takes of the mlp beside the experts (config.experts.shared_gate): the first number of its row of
/// `shares`, which has outs_per_block.
void weigh_shared(const compute& with, const matrix_view& gate, const_float_rows x, std::int64_t rows,
                  float_rows shares);

}  // namespace troupe
