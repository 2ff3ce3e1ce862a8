#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/device_id.hpp"
#include "base/thread_pool.hpp"
#include "cli/cli11_fwd.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/arch/single_sequence.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/compute.hpp"

namespace troupe {

/// Flags that several commands share.
struct model_options {
  std::string path;
  std::string quant;  ///< empty: as the file has it
  std::vector<std::string> keep;
  std::string adapter;
  std::string kv;  ///< empty: as the model wants it
  std::string device = "cpu";
  int threads = 0;
  std::int64_t context = 0;  ///< 0: the model's
};

void add_model(CLI::App& command, model_options& options);
void add_quant(CLI::App& command, model_options& options);
void add_keep(CLI::App& command, model_options& options);
void add_kv(CLI::App& command, model_options& options);
void add_context(CLI::App& command, model_options& options);
void add_threads(CLI::App& command, model_options& options);
void add_device(CLI::App& command, model_options& options);
/// All of them.
void add_model_options(CLI::App& command, model_options& options);

/// 0 means all processors.
int thread_count(const model_options& options);
/// Refuses --keep without --quant.
void check_keep(const model_options& options);
/// How the model is to be loaded; checked likewise.
load_options load_options_of(const model_options& options);
/// Refuses one that is not there.
device_id device_of(const model_options& options);

/// A model and an adapter that are ready to run, with the threads to run them. Owns all of it.
class runtime {
 public:
  /// Loads; packs first where that was never done, and shows how far it has come.
  explicit runtime(const model_options& options);

  const loaded_model& model() const { return *model_; }
  const std::shared_ptr<const loaded_model>& shared_model() const { return model_; }
  const compute& with() const { return with_; }
  const kernel_table& kernels() const { return with_.kernels; }
  device_id device() const { return device_; }
  kv_kind kv() const { return kv_; }
  /// The most positions that a sequence may have.
  std::int64_t context() const { return context_; }
  /// Room for `positions`; the longest piece that is fed at once is `longest`.
  single_sequence sequence(std::int64_t positions, std::int64_t longest);

 private:
  std::int64_t memory_for(std::int64_t positions) const;

  device_id device_;
  thread_pool pool_;
  compute with_;
  std::shared_ptr<const loaded_model> model_;
  std::unique_ptr<const lora_adapter> adapter_;
  kv_kind kv_;
  std::int64_t context_;
};

/// A packed model of `path`, with progress shown; warnings go to standard error unless the options have a place.
std::shared_ptr<const loaded_model> load_with_progress(const std::string& path, load_options options,
                                                       thread_pool& pool);

}  // namespace troupe
