#include "cli/train/train_subject.hpp"

#include <optional>

#include "base/sha256.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/train/parameters/master_weights.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class adapter_subject final : public train_subject {
 public:
  adapter_subject(const training_flags& o, thread_pool& pool) : base_name_(o.model.path), dropout_(o.run.dropout) {
    const load_options load = load_options_of(o.model);
    if (o.init.empty()) check_lora(o.lora, open_model(o.model.path).config);
    const auto base = load_with_progress(o.model.path, load, pool);
    const std::uint64_t base_fingerprint = fingerprint_of(*base);
    model_ = frozen(base);
    const model_config& config = model_.config;
    lora_.emplace(model_, o.init.empty() ? o.lora : read_lora_options(o.init, config), o.run.seed);
    identity_ = identity_of(lora_->options(), base_fingerprint);
    if (o.init.empty()) return;
    lora_->load(o.init, config);
    identity_ += " init " + sha256().add(std::as_bytes(lora_->parameters().values())).finish().substr(0, 16);
  }
  const trained_model& model() const override { return model_; }
  const parameter_set& parameters() const override { return lora_->parameters(); }
  std::string identity() const override { return identity_; }
  void save(const fs::path& folder) const override { lora_->save(folder, base_name_, dropout_); }

 private:
  std::string base_name_, identity_;
  double dropout_;
  trained_model model_;
  std::optional<lora_parameters> lora_;
};

class model_subject final : public train_subject {
 public:
  explicit model_subject(const training_flags& o) : source_(o.model.path) {
    config_text_ = detail::read_text(source_ / "config.json", 16 << 20);
    if (o.fresh || !has_safetensors(source_))
      weights_ = std::make_unique<master_weights>(read_hf_config(source_), o.run.seed);
    else
      weights_ = std::make_unique<master_weights>(source_);
  }
  const trained_model& model() const override { return weights_->model(); }
  const parameter_set& parameters() const override { return weights_->parameters(); }
  std::string identity() const override { return {}; }
  void save(const fs::path& folder) const override {
    weights_->save(folder, config_text_);
    copy_companions(source_, folder);
  }

 private:
  fs::path source_;
  std::string config_text_;
  std::unique_ptr<master_weights> weights_;
};

}  // namespace

std::unique_ptr<train_subject> make_train_subject(const training_flags& options, thread_pool& pool) {
  if (options.full) return std::make_unique<model_subject>(options);
  return std::make_unique<adapter_subject>(options, pool);
}

}  // namespace troupe
