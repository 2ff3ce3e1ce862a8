#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/lora/adapter_file.hpp"
#include "model/train/data/training_rows.hpp"
#include "model/train/parameters/parameter_set.hpp"

namespace troupe {

/// The whole forward pass in plain double loops, with the weights of a packed model: gradients are compared with its
/// slopes. Slow and simple; every value may be changed by its name.
class reference_model {
 public:
  explicit reference_model(const loaded_model& model);

  struct factors {
    std::vector<double> a, b;  // [rank, ins], [outs, rank]
    std::int64_t rank = 0;
    double scale = 0;
  };
  std::map<std::string, std::vector<double>> weights;  ///< by our names; matrices [outs, ins]
  std::map<std::string, factors> adapter;              ///< by the name of our module: "model.layers.0.self_attn.q_proj"

  /// The loss summed over the targets.
  double loss(const training_rows& batch) const;

 private:
  using rows = std::vector<std::vector<double>>;
  rows linear(const std::string& module, const rows& x, std::int64_t outs) const;
  rows norm(const std::string& name, const rows& x) const;
  std::vector<double> rms(const std::string& name, std::vector<double> x) const;
  struct keys_and_values {
    rows k, v;
  };
  rows attention(std::int64_t layer, const rows& x) const;
  rows latent_attention(std::int64_t layer, const rows& x) const;
  rows unit_heads(rows x, std::int64_t dim) const;
  rows linear_attention(std::int64_t layer, const rows& x) const;
  rows state_space(std::int64_t layer, const rows& x) const;
  rows convolved(const std::string& name, const rows& x, std::int64_t most) const;
  rows mixed(std::int64_t layer, const rows& x) const;
  rows short_convolution(std::int64_t layer, const rows& x) const;
  static double capped(double x, float cap);
  double active(double x) const;
  rows mlp(const std::string& prefix, const rows& x) const;  ///< "model.layers.0.mlp."
  static double sigmoid(double x);
  rows mixture(const std::string& prefix, const rows& x, const rows& routed) const;
  std::int64_t group_of(std::size_t expert) const;
  std::set<std::int64_t> best_groups(const std::function<double(std::size_t)>& worth) const;
  rows apart(const std::string& prefix, const rows& x) const;
  rows numbers_of(const training_rows& batch, const training_rows::segment& segment, const rows& embedded) const;
  rows with_tokens(std::int64_t layer, const rows& x, const rows& numbers) const;
  rows shared(const std::string& prefix, const rows& x) const;
  void place(std::int64_t layer, const std::string& norm, std::vector<double>& head, std::int64_t position) const;
  double segment_loss(const training_rows& batch, const training_rows::segment& segment) const;

  model_config config_;
  mutable std::map<std::int64_t, keys_and_values> made_;  ///< by layer, of the segment, for those that share them
};

}  // namespace troupe
