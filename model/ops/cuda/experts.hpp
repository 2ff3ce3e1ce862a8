// Ops of a mixture of experts, under the rules of ops.hpp. Each row goes through some experts, which its router's
// scores choose. Who goes where is decided on the device and known there alone; the host has bounds.
//
// A visit is a row in an expert. Visits lie at places, those of one expert side by side, in the order of rows. Each
// expert begins with a tile of its own, so that rows of a tile share their weights.
#pragma once
#include <span>

#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

constexpr int most_experts = 1024;

/// How many visits there can be, and how many tiles they make at most. `tile_rows` decides the speed alone.
struct visit_bounds {
  int rows = 0;
  int experts = 0;
  int taken = 0;      ///< experts of a row
  int tile_rows = 1;  ///< visit_tile_rows()

  constexpr int visits() const { return rows * taken; }
  constexpr int tiles() const {  ///< every expert that somebody visits may have a last one with one row
    const int visited = visits() < experts ? visits() : experts;
    return (visits() + visited * (tile_rows - 1)) / tile_rows;
  }
  constexpr int places() const { return tiles() * tile_rows; }
};
/// 8, 16, 32, 64 or 128.
int visit_tile_rows(int rows, int experts, int taken);
constexpr int few_visit_rows = 8;     ///< products of such tiles read rows where they are, others at their places
constexpr int most_visit_rows = 128;  ///< of a tile

/// Some visits to one expert. Tile i has the places from i * tile_rows on.
struct visit_tile {
  std::int32_t expert = 0;
  std::int32_t rows = 0;  ///< 0: nothing to do, nor behind it
};

/// Who goes where.
struct visit_tables {
  visit_bounds bounds;
  // Of each row its visits in the order of experts. A row that only fills the pass up has none: -1.
  std::int32_t* experts = nullptr;  ///< [rows, taken]
  std::int32_t* places = nullptr;   ///< [rows, taken]
  float* shares = nullptr;          ///< [rows, taken], of what the expert makes
  std::int32_t* row_at = nullptr;   ///< [places]; -1: none
  visit_tile* tiles = nullptr;      ///< [tiles]
  std::uint32_t* marks = nullptr;   ///< [experts, marked_rows]: a bit for each of 32 rows
  std::int32_t* before = nullptr;   ///< [experts, marked_rows]: visits of earlier rows

  constexpr int marked_rows() const { return (bounds.rows + 31) / 32; }
};

/// Memory for the tables of any pass of up to so many rows.
class visit_memory {
 public:
  visit_memory() = default;
  visit_memory(int most_rows, int experts, int taken);
  visit_tables tables(int rows) const;
  /// Of all tiles, in any pass.
  static int most_places(int most_rows, int experts, int taken);

 private:
  visit_bounds most_;
  device_buffer<std::int32_t> experts_, places_, row_at_, before_;
  device_buffer<float> shares_;
  device_buffer<visit_tile> tiles_;
  device_buffer<std::uint32_t> marks_;
};

/// Fills the tables: a row goes through the experts of its largest scores, of equal ones through the first.
struct choose_args {
  visit_tables visits = {};
  const_float_rows scores = {};             ///< [rows, experts]
  const std::int32_t* positions = nullptr;  ///< [rows]; below 0: the row only fills the pass up
  bool whole_shares = true;                 ///< shares of a row add up to one; else to what the softmax gave them
};
void choose_experts(const stream& on, const choose_args& args);

/// Rows, and codes of them, come to the places of their visits. What is null in `to_codes` is left out, as is x if `to`
/// is null.
struct gather_args {
  visit_tables visits = {};
  std::int64_t n = 0;
  const_float_rows x = {};
  row_codes codes = {};
  float_rows to = {};
  row_codes to_codes = {};
};
void gather_visits(const stream& on, const gather_args& args);

/// y[place] = x W^T of the place's expert. Products have the first expert's matrix; the others' parts (weights, scales,
/// mids) follow behind it without gaps. No biases, nothing is accumulated.
/// Where tiles have few_visit_rows the inputs may be rows: `row_at` says whose, as it is in the tables. Otherwise, and
/// where it is null, they lie at places.
struct expert_inputs {
  visit_tables visits = {};
  const_float_rows x = {};  ///< for f32 weights
  row_codes codes = {};     ///< for the others
  const std::int32_t* row_at = nullptr;
};
void matmul_experts(const stream& on, std::span<const product> products, const expert_inputs& inputs);

/// hidden += share * made of the row's visits, in the order of experts.
struct add_visits_args {
  visit_tables visits = {};
  std::int64_t n = 0;
  const_float_rows made = {};  ///< [places, n]
  float_rows hidden = {};      ///< [rows, n]
};
void add_visits(const stream& on, const add_visits_args& args);

}  // namespace troupe::cuda
