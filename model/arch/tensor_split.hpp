// A decoder whose matrices are cut over several ranks: each makes some outputs of every product, from whole rows of
// inputs. So no sum is ever cut, and what the ranks put together is what one makes alone, to the last bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/formats/model_config.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/compute.hpp"

namespace troupe {

struct tensor_split {
  static constexpr int everyone = -1;

  int rank = 0, ranks = 1;
  /// `data` is made of the ranks' parts; part r ends at ends[r]. Rank `root`, or every rank, gets the parts that it
  /// lacks. All ranks make the same call. Empty if there is one rank.
  std::function<void(std::span<float> data, std::span<const std::size_t> ends, int root)> gather;
  bool on_device = false;  ///< `data` lies in the memory of the decoder's device

  bool is_whole() const { return ranks == 1; }
};
/// Why several ranks cannot share a stage of such a model; empty: as many can as it has heads of keys and values.
std::string_view ranks_lack(const model_config& config);
/// Throws input_error where several ranks cannot share the model's stages, or so many cannot.
void check(const tensor_split& split, const model_config& config);

/// Columns of a row, shared out to the ranks in their order.
struct column_cut {
  std::vector<std::int64_t> ends;    ///< of every rank's columns
  std::int64_t first = 0, last = 0;  ///< this rank's, the end not included

  std::int64_t count() const { return last - first; }
  std::int64_t begin_of(std::size_t rank) const { return rank == 0 ? 0 : ends[rank - 1]; }
  // The matrix' blocks of 16 outputs that these columns are in: where heads are narrow two ranks may make the same one.
  std::int64_t first_block() const { return first / outs_per_block; }
  std::int64_t last_block() const { return padded_outs(last) / outs_per_block; }
  std::int64_t first_output() const { return first_block() * outs_per_block; }  ///< of these blocks
};
/// Whole units of `unit` columns, as evenly as can be.
column_cut cut_columns(const tensor_split& split, std::int64_t units, std::int64_t unit);

/// Whole blocks of a matrix' outputs.
column_cut cut_blocks(const tensor_split& split, std::int64_t outs);

/// The columns that each rank makes of all that a decoder makes.
struct output_cuts {
  output_cuts(const tensor_split& split, const model_config& config, const head_sizes& sizes);
  output_cuts(const tensor_split& split, const model_config& config)
      : output_cuts(split, config, config.usual_heads()) {}
  const column_cut& of(linear_kind kind) const;

  column_cut heads;               ///< of keys and values, one a column
  column_cut q, kv;               ///< what these heads have: whole heads; of a model with gates, which is whole, all
  column_cut hidden, ffn, vocab;  ///< whole blocks of outputs
};
/// The blocks of a matrix, or of an adapter's factor B, that a rank's columns are in.
matrix_view outputs_of(const matrix_view& w, const column_cut& cut);
factor_view outputs_of(factor_view b, const column_cut& cut);

/// Puts rows together.
class column_gather {
 public:
  explicit column_gather(tensor_split split) : split_(std::move(split)) {}

  const tensor_split& split() const { return split_; }
  /// `rows`: [count, stride], of which this rank has made its columns.
  void operator()(const compute& with, float* rows, int count, std::int64_t stride, const column_cut& cut,
                  int root = tensor_split::everyone);

 private:
  tensor_split split_;
  aligned_buffer<float> parts_;
  std::vector<std::size_t> ends_;
};

}  // namespace troupe
