#pragma once
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/to_size.hpp"
#include "tests/cli/program.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe::test {

/// The golden llama as a GGUF file with a byte-level vocabulary of one letter a token.
class gguf_model {
 public:
  gguf_model() : source_(open_safetensors(golden / "llama")) {
    metadata();
    tensor("model.embed_tokens", "token_embd");
    tensor("model.norm", "output_norm");
    tensor("lm_head", "output");
    for (int layer = 0; layer < 2; ++layer)
      for (const auto& [ours, theirs, heads] : parts)
        tensor("model.layers." + std::to_string(layer) + "." + ours, "blk." + std::to_string(layer) + "." + theirs,
               heads);
  }
  std::string build() const { return to_.build(); }
  /// For changes before build().
  gguf_builder& builder() { return to_; }

 private:
  struct part {
    const char *ours, *theirs;
    std::size_t heads;  ///< > 0: rows must be reordered, since GGUF puts the two values of a rotated pair side by side
  };
  static constexpr std::array<part, 9> parts{{{"input_layernorm", "attn_norm", 0},
                                              {"self_attn.q_proj", "attn_q", 4},
                                              {"self_attn.k_proj", "attn_k", 2},
                                              {"self_attn.v_proj", "attn_v", 0},
                                              {"self_attn.o_proj", "attn_output", 0},
                                              {"post_attention_layernorm", "ffn_norm", 0},
                                              {"mlp.gate_proj", "ffn_gate", 0},
                                              {"mlp.up_proj", "ffn_up", 0},
                                              {"mlp.down_proj", "ffn_down", 0}}};

  void metadata() {
    to_.string("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.context_length", 256)
        .u32("llama.embedding_length", 32)
        .u32("llama.feed_forward_length", 44)
        .u32("llama.attention.head_count", 4)
        .u32("llama.attention.head_count_kv", 2)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .f32("llama.rope.freq_base", 10000.0f)
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.merges", {})
        .u32("tokenizer.ggml.bos_token_id", 94)
        .u32("tokenizer.ggml.eos_token_id", 95)
        .string("tokenizer.chat_template", "{{ messages[0].content }}!");
    std::vector<std::string> tokens;
    std::string types = raw<std::uint32_t>(5) + raw<std::uint64_t>(96);
    for (int id = 0; id < 94; ++id) tokens.push_back(std::string(1, static_cast<char>('!' + id)));
    tokens.insert(tokens.end(), {"<s>", "</s>"});
    for (int id = 0; id < 96; ++id) types += raw<std::int32_t>(id < 94 ? 1 : 3);
    to_.strings("tokenizer.ggml.tokens", tokens).key("tokenizer.ggml.token_type", 9, types);
  }

  void tensor(const std::string& ours, const std::string& theirs, std::size_t heads = 0) {
    const tensor_view& from = *source_.find(ours + ".weight");
    std::string data(reinterpret_cast<const char*>(from.data.data()), from.data.size());
    const auto rows = to_size(from.shape.front());
    const std::size_t row_bytes = data.size() / rows, dim = heads ? rows / heads : 0;
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t i = 0; i < dim; ++i) {
        const std::size_t half_split = head * dim + (i % 2) * (dim / 2) + i / 2;
        std::memcpy(data.data() + (head * dim + i) * row_bytes, from.data.data() + half_split * row_bytes, row_bytes);
      }
    to_.tensor(theirs + ".weight", {from.shape.rbegin(), from.shape.rend()}, 0, data);
  }

  tensor_set source_;
  gguf_builder to_;
};

}  // namespace troupe::test
