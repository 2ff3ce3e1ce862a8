#include "bench/random/random_model.hpp"

#include <cerrno>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/tokenizer/byte_alphabet.hpp"

namespace troupe::bench {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct shape {
  std::int64_t hidden, layers, heads, kv_heads, ffn, vocab, context;
  std::int64_t experts = 0, experts_taken = 0;
};

const std::map<std::string, shape> shapes{
    {"tiny", {.hidden = 64, .layers = 4, .heads = 4, .kv_heads = 2, .ffn = 192, .vocab = 512, .context = 512}},
    {"S", {.hidden = 768, .layers = 12, .heads = 12, .kv_heads = 12, .ffn = 2048, .vocab = 32000, .context = 2048}},
    {"M", {.hidden = 2048, .layers = 22, .heads = 32, .kv_heads = 4, .ffn = 5632, .vocab = 32000, .context = 2048}},
    {"MoE",
     {.hidden = 1024,
      .layers = 8,
      .heads = 16,
      .kv_heads = 4,
      .ffn = 512,
      .vocab = 32000,
      .context = 2048,
      .experts = 32,
      .experts_taken = 4}},
    {"8B-4", {.hidden = 4096, .layers = 4, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256, .context = 8192}},
    {"8B", {.hidden = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256, .context = 8192}}};

json config_of(const shape& s) {
  json config{{"architectures", {s.experts > 0 ? "MixtralForCausalLM" : "LlamaForCausalLM"}},
              {"model_type", s.experts > 0 ? "mixtral" : "llama"},
              {"hidden_size", s.hidden},
              {"num_hidden_layers", s.layers},
              {"num_attention_heads", s.heads},
              {"num_key_value_heads", s.kv_heads},
              {"intermediate_size", s.ffn},
              {"vocab_size", s.vocab},
              {"max_position_embeddings", s.context},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", false},
              {"bos_token_id", 256},
              {"eos_token_id", 257},
              {"torch_dtype", "bfloat16"}};
  if (s.experts > 0) config.update({{"num_local_experts", s.experts}, {"num_experts_per_tok", s.experts_taken}});
  return config;
}

/// Every byte is a token; 256 begins a text and 257 ends it.
json byte_tokenizer() {
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    append_utf8(letter, detail::letter_of(static_cast<std::uint8_t>(byte)));
    vocabulary[letter] = byte;
  }
  const auto special = [](int id, const char* text) {
    return json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"added_tokens", {special(256, "<s>"), special(257, "</s>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

/// One mlp, or a router and experts under the names that Mixtral's files have.
template <class Add>
void add_mlp(const shape& s, const Add& add) {
  if (s.experts == 0) {
    add("mlp.gate_proj", {s.ffn, s.hidden});
    add("mlp.up_proj", {s.ffn, s.hidden});
    add("mlp.down_proj", {s.hidden, s.ffn});
    return;
  }
  add("block_sparse_moe.gate", {s.experts, s.hidden});
  for (std::int64_t expert = 0; expert < s.experts; ++expert) {
    const auto name = [&](int part) { return fmt::format("block_sparse_moe.experts.{}.w{}", expert, part); };
    add(name(1), {s.ffn, s.hidden});
    add(name(2), {s.hidden, s.ffn});
    add(name(3), {s.ffn, s.hidden});
  }
}

std::vector<tensor_description> tensors_of(const shape& s) {
  const std::int64_t kv = s.hidden / s.heads * s.kv_heads;
  std::vector<tensor_description> all{{"model.embed_tokens.weight", dtype::bf16, {s.vocab, s.hidden}}};
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const auto add = [&](const std::string& name, std::vector<std::int64_t> dims) {
      all.push_back({fmt::format("model.layers.{}.{}.weight", layer, name), dtype::bf16, std::move(dims)});
    };
    add("input_layernorm", {s.hidden});
    add("self_attn.q_proj", {s.hidden, s.hidden});
    add("self_attn.k_proj", {kv, s.hidden});
    add("self_attn.v_proj", {kv, s.hidden});
    add("self_attn.o_proj", {s.hidden, s.hidden});
    add("post_attention_layernorm", {s.hidden});
    add_mlp(s, add);
  }
  all.push_back({"model.norm.weight", dtype::bf16, {s.hidden}});
  all.push_back({"lm_head.weight", dtype::bf16, {s.vocab, s.hidden}});
  return all;
}

/// Roughly normal with the usual spread: the sum of four bytes. Norms are ones.
class random_weights {
 public:
  void fill(std::vector<std::uint16_t>& values, bool norm) {
    for (auto& value : values) {
      state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
      const auto bits = static_cast<std::uint32_t>(state_ >> 32);
      const int sum = static_cast<int>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510;
      value = f32_to_bf16(norm ? 1.0f : static_cast<float>(sum) * (0.02f / 148.0f));
    }
  }

 private:
  std::uint64_t state_ = 1;
};

void write_weights(const fs::path& path, const shape& s) {
  const auto tensors = tensors_of(s);
  std::ofstream file(path, std::ios::binary);
  const std::string header = safetensors_header(tensors, {{"format", "pt"}});
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  random_weights random;
  std::vector<std::uint16_t> row;
  for (const auto& tensor : tensors) {
    const bool norm = tensor.shape.size() == 1;
    row.resize(to_size(tensor.shape.back()));
    for (std::int64_t i = 0; i < (norm ? 1 : tensor.shape[0]); ++i) {
      random.fill(row, norm);
      file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * 2));
    }
  }
  if (!file.flush()) fail_to_write(path, errno);
}

}  // namespace

void write_random_model(const std::string& name, const fs::path& folder) {
  const auto found = shapes.find(name);
  if (found == shapes.end()) refuse("'{}' is no shape: use tiny, S, M, MoE, 8B or 8B-4", name);
  const shape& s = found->second;
  const auto write = [&](const char* file, const std::string& text) { write_file(folder / file, text + "\n"); };
  make_folder(folder);
  write("config.json", config_of(s).dump(2));
  write("tokenizer.json", byte_tokenizer().dump());
  write("tokenizer_config.json", json{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_bos_token", true}}.dump(2));
  write_weights(folder / model_weights_name, s);
}

}  // namespace troupe::bench
