#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/device_id.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/arch/tensor_split.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/compute.hpp"

namespace troupe {

/// One sequence's rows of a pass: consecutive tokens whose keys and values go behind those cached already.
struct pass_sequence {
  int first_row = 0;
  int rows = 0;
  std::int64_t position = 0;             ///< of the first row
  const std::int32_t* blocks = nullptr;  ///< block table, covering position + rows
  const lora_adapter* adapter = nullptr;
  /// Where its state is kept, of a model that keeps states; no other sequence of the pass has the same. From position 0
  /// on it begins anew, whatever was there.
  std::int32_t state = 0;
};

/// A ragged batch: the rows of all sequences one after another. Neighbours with the same adapter share its products.
struct pass {
  std::span<const pass_sequence> sequences;
  int rows = 0;
};

/// Rows whose logits are asked for. Of some the token of the largest one is enough, the first of equal ones: their
/// logits need not come to the host.
struct wanted_logits {
  std::span<const int> rows;
  std::span<const int> largest_of = {};  ///< other rows; of a decoder that finds_largest()
  std::int32_t* largest = nullptr;       ///< [largest_of.size()]: their tokens
};

/// A run of consecutive layers over ragged batches. What a row becomes depends on its own sequence alone, bit for bit:
/// every operation treats rows independently and adds in an order that only the weights' shapes decide. With a split,
/// several decoders compute together, and each stores its own heads' keys and values. Holds the working memory of one
/// pass at a time; one thread calls it.
///
/// A pass is embed (by the decoder with the first layer), run, then logits and normalized (by the one with the last).
/// Decoders hand rows to each other in `hidden`. One that computes on a device keeps its rows there: its run reads
/// `hidden` only if it lacks the model's first layer, and writes it only if it lacks the last one.
class decoder {
 public:
  struct options {
    std::int64_t first_layer = 0;
    std::int64_t layers = -1;  ///< -1: to the last
    int max_rows = 512;
    int max_sequences = 0;  ///< of a pass; 0: as many as rows
    kv_kind kv = kv_kind::f16;
    std::int64_t blocks = 0;   ///< of KV storage
    std::int32_t states = 1;   ///< that are kept at a time, of a model that keeps them
    std::int64_t context = 0;  ///< positions of one sequence at most; 0: as many as the blocks hold
    /// By which longrope chooses its divisors, where the blocks are for less than was asked for; 0: `context`.
    std::int64_t rope_context = 0;
    tensor_split split = {};
    device_id device = {};
  };
  virtual ~decoder() = default;
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;

  /// Before a pass names it; it must stay until it is removed.
  virtual void add_adapter(const lora_adapter& adapter) = 0;
  virtual void remove_adapter(const lora_adapter& adapter) = 0;
  /// Copies the block in all layers.
  virtual void copy_block(std::int64_t from, std::int64_t to) = 0;
  /// Copies the state in all layers, of a model that keeps them.
  virtual void copy_state(std::int32_t /*from*/, std::int32_t /*to*/) {}

  /// Rows of hidden state for these tokens: [rows, hidden_stride()].
  virtual void embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) = 0;
  /// Runs the layers over `hidden` in place, and stores keys and values.
  virtual void run(const pass& batch, float* hidden) = 0;
  // Both lend their memory until the next call of either.
  /// Of rows after the final norm: [wanted.rows.size(), logit_stride()]. Of a split decoder rank 0 gets them.
  virtual const float* logits(const float* hidden, const wanted_logits& wanted) = 0;
  /// Some rows after the final norm: [rows.size(), hidden_stride()].
  virtual const float* normalized(const float* hidden, std::span<const int> rows) = 0;
  /// It can be asked for the token of the largest logit alone.
  virtual bool finds_largest() const { return false; }
  /// What the operator should know of how it computes; empty: nothing.
  virtual std::string remark() const { return {}; }

  std::int64_t hidden_stride() const { return padded_row(model_->config.hidden); }
  std::int64_t logit_stride() const { return padded_outs(model_->config.vocab_size); }
  std::int64_t context() const { return options_.context; }  ///< positions of one sequence at most
  int max_sequences() const { return options_.max_sequences; }
  bool is_first_rank() const { return options_.split.rank == 0; }
  /// Whether ranks can tell each other tokens: not if all they can exchange is a device's memory.
  bool can_share_tokens() const { return options_.split.is_whole() || !options_.split.on_device; }
  /// Gives every rank those of the first one.
  void share_tokens(std::span<std::int32_t> tokens) const;
  const loaded_model& model() const { return *model_; }

 protected:
  decoder(std::shared_ptr<const loaded_model> model, const options& chosen);

  std::shared_ptr<const loaded_model> model_;
  options options_;  ///< `layers`, sequences and contexts as they are, not as they were asked for
};

/// f32 caches belong to f32 models; all others cache in f16.
kv_kind default_kv(const loaded_model& model);

/// On the device that was chosen; `with` is for the processor's. Throws input_error where there is no such device.
std::unique_ptr<decoder> make_decoder(std::shared_ptr<const loaded_model> model, const decoder::options& chosen,
                                      const compute& with);

}  // namespace troupe
