#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/device_id.hpp"
#include "base/logarithm.hpp"
#include "model/ops/dropout.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/kernels/products.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

struct pass_result {
  double loss = 0;  ///< summed over the targets, in nats
  std::int64_t targets = 0;
  std::int64_t correct = 0;  ///< targets that the model would have chosen

  void add(const pass_result& part) {
    loss += part.loss;
    targets += part.targets;
    correct += part.correct;
  }
  /// A row with a target, as the cross-entropy kernels of the processor or of a GPU report it.
  template <class CrossEntropyResult>
  void add_row(const CrossEntropyResult& row) {
    loss += logarithm(row.sum) + static_cast<double>(row.most) - static_cast<double>(row.target);
    correct += row.leads;
    ++targets;
  }
};

/// Forward and backward through a model over the rows of one micro-batch. Gradients are added to those of the model's
/// parameters, or set. Holds the working memory of one pass; one thread calls it. Every sum has a fixed order.
class train_pass {
 public:
  struct options {
    std::int64_t most_rows = 2048;
    std::int64_t most_positions = 512;  ///< of one segment
    train_precision precision = train_precision::fine;
    /// Keeps what every layer computed; otherwise only its input, and backward computes the rest again.
    bool keep_activations = true;
    std::function<void()> between = {};  ///< called between products: a place to yield to others; may be empty
    device_id device = {};
    std::int64_t bytes_beside = 0;  ///< that the run takes beside its passes later on; counted where memory is short
  };
  virtual ~train_pass() = default;

  /// Loss and gradients: those of factor * the summed loss.
  virtual pass_result train(const training_rows& batch, float factor, const dropout_key& dropout) = 0;
  /// Loss alone, nothing dropped.
  virtual pass_result measure(const training_rows& batch) = 0;
  /// Whether `train` puts its gradients in the place of what is there, which then need not be zero.
  virtual bool sets_gradients() const { return false; }
  /// A line for whoever trains: how it is computed. May be empty.
  virtual std::string remark() const { return {}; }
};

/// Throws input_error where the device is a GPU and none trains such a model.
void check_trainable(const device_id& device, const model_config& config);

/// On the processor or a GPU, as the options' `device` says. `parameters` are what is trained of `model`; both outlive
/// it. Throws input_error where a GPU is asked for what none does, and full_error where memory is short.
std::unique_ptr<train_pass> make_train_pass(const trained_model& model, const parameter_set& parameters,
                                            const compute& with, train_pass::options chosen);

/// Throws input_error where a batch is larger than the options say, or of another vocabulary.
void check_rows(const training_rows& batch, const train_pass::options& options, const model_config& config);

}  // namespace troupe
