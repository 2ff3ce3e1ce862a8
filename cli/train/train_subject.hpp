#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_pool.hpp"
#include "cli/train/train_local.hpp"
#include "model/train/parameters/trained_model.hpp"

namespace troupe {

/// What is trained: an adapter's factors, or all weights. Writes itself in the published form.
class train_subject {
 public:
  virtual ~train_subject() = default;
  virtual const trained_model& model() const = 0;
  virtual const parameter_set& parameters() const = 0;
  /// What a checkpoint must match besides the names and shapes of its parameters.
  virtual std::string identity() const = 0;
  virtual void save(const std::filesystem::path& folder) const = 0;
};

std::unique_ptr<train_subject> make_train_subject(const training_flags& options, thread_pool& pool);

}  // namespace troupe
