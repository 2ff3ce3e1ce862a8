#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"

namespace troupe {

/// A matrix or vector that is trained. Rows are padded with zeros to 16 floats, and their gradients too.
struct parameter {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool decays = true;  ///< weight decay applies
  std::int64_t stride = 0;
  std::size_t offset = 0;  ///< of its first value among all

  std::size_t size() const { return to_size(rows * stride); }
};

/// All that is trained, with its gradients: one run of floats each, so that sums, all-reduces and checkpoints need not
/// know what is in them. Parameters are added first, then memory is taken once.
class parameter_set {
 public:
  /// Its index.
  std::size_t add(std::string name, std::int64_t rows, std::int64_t columns, bool decays);
  void allocate();

  const std::vector<parameter>& list() const { return list_; }
  const parameter* find(std::string_view name) const;
  std::span<float> values() const { return {values_.data(), values_.size()}; }
  std::span<float> gradients() const { return {gradients_.data(), gradients_.size()}; }
  float* value(std::size_t index) const { return values_.data() + list_[index].offset; }
  float* gradient(std::size_t index) const { return gradients_.data() + list_[index].offset; }
  void clear_gradients() const;

  /// The unpadded values of a parameter that lies in a run like values().
  std::vector<float> compact(const parameter& p, std::span<const float> from) const;
  void expand(const parameter& p, std::span<const float> compacted, std::span<float> to) const;

 private:
  std::vector<parameter> list_;
  std::size_t total_ = 0;
  aligned_buffer<float> values_, gradients_;
};

}  // namespace troupe
