#pragma once
#include <array>
#include <map>
#include <memory>

#include "model/arch/cuda/device_weights.hpp"
#include "model/ops/cuda/bf16_rows.hpp"
#include "model/ops/cuda/train_ops.hpp"
#include "model/train/cuda/device_linear.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// Linear layers with their adapters by a library for bf16, there and back, with sums in f32. A layer's weights W
/// [outs, ins] are unpacked into working memory, and the adapter's factors put around them:
///
///     W  sB        y = [x, between] [W, sB]^T    where between = x A^T
///     A            dx = [dy, inner] [W; A]       where inner = s dy B
///
/// So an adapter costs no second pass over y or dx. Rows of inputs and of gradients are rounded into working memory,
/// too, with room for `between` and `inner` behind each.
class library_linears {
 public:
  /// `keeps`: all weights are unpacked once, into memory of their own if there is enough, and not again and again.
  library_linears(std::unique_ptr<cuda::float_library> library, const trained_model& model,
                  const device_weights& weights, std::int64_t most_rows, bool keeps);
  /// What keeping takes; 0: the library multiplies nothing of this model.
  static std::int64_t kept_bytes(const trained_model& model);

  /// What both ways of a layer share.
  struct rows_of_layer {
    int rows = 0;
    float_rows dropped = {};        ///< what the adapter reads, if that is not what the layer reads
    int gradients = 0;              ///< which working memory has those of the outputs
    const float* before = nullptr;  ///< what y is added to, if not itself; with its stride
  };

  /// What layers read from now on. It is rounded once for all of them.
  void read(const cuda::stream& on, const_float_rows x, int rows, std::int64_t n);
  /// Where that lies, with zeros up to padded_row(ins), for who makes it rounded.
  cuda::bf16_rows inputs(std::int64_t ins) const;
  /// Where gradients of outputs lie, with zeros up to padded_outs(outs): in one of two places.
  cuda::bf16_rows gradients(std::int64_t outs, int which) const;
  /// y = or += x W^T + bias + the adapter's part. y may be null: then only `between` is made.
  void forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, float_rows y, into how);
  /// The same, rounded. The layer has no bias.
  void forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, cuda::bf16_rows y);
  /// After the layer's way forward: dx = or += dy W + the adapter's part, and the gradients of its factors. dx may be
  /// null. dy is, if it has been rounded to its place. Where the adapter reads something else than the layer, its part
  /// of dx is what `dropped` becomes, and is not added.
  void back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, const_float_rows dy, float_rows dx,
            into how);
  /// The same, rounded. The adapter reads what the layer reads.
  void back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, const_float_rows dy,
            cuda::bf16_rows dx);

  /// A product of any size, some outputs at a time.
  void multiply(const cuda::stream& on, const cuda::weight_product& product);

 private:
  struct kept_weights {
    matrix_view packed = {};
    cuda::bf16_rows rows = {};
    bool is_unpacked = false;
  };

  void keep(const trained_model& model, const device_weights& weights);
  /// Those that a matrix, or a piece of one, belongs to; null: none.
  kept_weights* kept(const matrix_view& w);
  /// Where those of a layer, or of a piece, lie with the factors.
  cuda::bf16_rows weights(const matrix_view& w);
  void unpack(const cuda::stream& on, const matrix_view& w);
  /// What the adapter reads.
  cuda::bf16_rows adapter_inputs(const cuda::stream& on, const device_linear& l, const rows_of_layer& r) const;
  /// `between`, in its place behind the inputs and in its own.
  void adapter_forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r);
  cuda::bf16_product forward_product(const cuda::stream& on, const device_linear& l, int rows);
  void put_factors(const cuda::stream& on, const device_linear& l);
  void factors_back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, const_float_rows dy);
  cuda::bf16_product back_product(const cuda::stream& on, const device_linear& l, const rows_of_layer& r);
  void forward_piece(const cuda::stream& on, const cuda::weight_product& product);
  void back_piece(const cuda::stream& on, const cuda::weight_product& product);

  std::unique_ptr<cuda::float_library> library_;
  std::int64_t rank_room_;  ///< behind each row
  cuda::device_buffer<std::uint16_t> inputs_, dropped_, weights_, all_weights_;
  std::array<cuda::device_buffer<std::uint16_t>, 2> gradients_;
  std::map<const std::byte*, kept_weights> kept_;  ///< by where the packed ones lie
};

}  // namespace troupe
