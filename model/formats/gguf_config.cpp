#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "model/formats/gguf_facts.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {
namespace {

/// The keys of one architecture: "llama.block_count" for block_count.
class arch_keys {
 public:
  arch_keys(const gguf_file& file, std::string arch) : file_(file), arch_(std::move(arch)) {}

  const std::string& arch() const { return arch_; }
  const std::string& where() const { return file_.name; }

  template <class T>
  std::optional<T> get(std::string_view key) const {
    return file_.get<T>(full(key));
  }
  bool has(std::string_view key) const { return file_.metadata.contains(full(key)); }
  template <class T>
  T needed(std::string_view key) const {
    if (auto value = get<T>(key)) return *value;
    refuse("{}: lacks the metadata key \"{}\"", where(), full(key));
  }
  std::int64_t size(std::string_view key) const { return checked(key, needed<std::int64_t>(key)); }
  std::int64_t size(std::string_view key, std::int64_t otherwise) const {
    return checked(key, get<std::int64_t>(key).value_or(otherwise));
  }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", arch_, key); }

 private:
  std::int64_t checked(std::string_view key, std::int64_t value) const {
    if (value <= 0 || value > std::int64_t{1} << 31) refuse("{}: \"{}\" is {}", where(), full(key), value);
    return value;
  }

  const gguf_file& file_;
  std::string arch_;
};

std::string architecture_of(const gguf_file& file) {
  constexpr std::array<std::string_view, 4> supported = {"gpt2", "llama", "qwen2", "qwen3"};
  if (file.get<std::string>("general.type") == "adapter")
    refuse("{}: is a LoRA adapter, no model: adapters are folders as PEFT writes them (adapter_model.safetensors)",
           file.name);
  const auto name = file.get<std::string>("general.architecture");
  if (!name) refuse("{}: lacks the metadata key \"general.architecture\"", file.name);
  if (std::find(supported.begin(), supported.end(), *name) == supported.end())
    refuse("{}: the architecture \"{}\" is not supported: gpt2, llama (mistral too), qwen2 and qwen3 are", file.name,
           name->substr(0, 80));
  return *name;
}

void read_sizes(const arch_keys& keys, model_config& into) {
  if (keys.get<std::int64_t>("expert_count").value_or(0) != 0)
    refuse("{}: mixtures of experts are not supported", keys.where());
  into.hidden = keys.size("embedding_length");
  into.layers = keys.size("block_count");
  into.heads = keys.size("attention.head_count");
  into.kv_heads = keys.size("attention.head_count_kv", into.heads);
  into.head_dim = keys.size("attention.key_length", std::max<std::int64_t>(into.hidden / into.heads, 1));
  if (keys.size("attention.value_length", into.head_dim) != into.head_dim)
    refuse("{}: keys and values of different length are not supported", keys.where());
  into.ffn = keys.size("feed_forward_length");
  into.context = keys.size("context_length");
}

/// As llama.cpp computes it: rope.scaling.attn_factor comes on top of the usual stretch.
void read_yarn(const arch_keys& keys, model_config& into) {
  auto& yarn = into.rope.yarn;
  into.rope.scaling = rope_scaling::yarn;
  into.rope.factor = keys.needed<double>("rope.scaling.factor");
  into.rope.original_context = keys.size("rope.scaling.original_context_length", into.context);
  yarn.attention_factor = keys.get<double>("rope.scaling.attn_factor").value_or(yarn.attention_factor);
  yarn.beta_fast = keys.get<double>("rope.scaling.yarn_beta_fast").value_or(yarn.beta_fast);
  yarn.beta_slow = keys.get<double>("rope.scaling.yarn_beta_slow").value_or(yarn.beta_slow);
  const auto refuse_unless = [&](std::string_view key, double usual) {
    if (const double value = keys.get<double>(key).value_or(usual); value != usual)
      refuse("{}: \"{}\" is {}, which is not supported", keys.where(), keys.full(key), value);
  };
  refuse_unless("rope.scaling.yarn_ext_factor", 1);
  refuse_unless("rope.scaling.yarn_log_multiplier", 0);
  detail::stretch_context(into);
}

void read_rope(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  if (keys.size("rope.dimension_count", into.head_dim) != into.head_dim)
    refuse("{}: \"{}\" differs from the head size {}: positions in part of a head are not supported", keys.where(),
           keys.full("rope.dimension_count"), into.head_dim);
  into.rope.theta = keys.get<double>("rope.freq_base").value_or(10000.0);
  into.rope.frequency_divisors.assign(facts.frequency_divisors.begin(), facts.frequency_divisors.end());
  const auto factor = keys.get<double>("rope.scaling.factor"), old_factor = keys.get<double>("rope.scale_linear");
  const auto type = keys.get<std::string>("rope.scaling.type").value_or(factor ? "linear" : "none");
  if (type == "yarn") return read_yarn(keys, into);
  if (type != "none" && type != "linear")
    refuse("{}: the rope scaling \"{}\" is not supported: none, linear and yarn are", keys.where(), type.substr(0, 80));
  if (type == "none" && !old_factor) return;
  into.rope.factor = factor.value_or(old_factor.value_or(1.0));
  if (into.rope.factor != 1.0) into.rope.scaling = rope_scaling::linear;
}

void read_windows(const arch_keys& keys, model_config& into) {
  const auto size = keys.get<std::int64_t>("attention.sliding_window").value_or(0);
  if (constexpr std::string_view pattern = "attention.sliding_window_pattern"; size != 0 && keys.has(pattern))
    refuse("{}: \"{}\": windows that differ by layer are not supported in GGUF files", keys.where(),
           keys.full(pattern));
  if (size != 0) into.windows.assign(static_cast<std::size_t>(std::min<std::int64_t>(into.layers, 1 << 16)), size);
}

void read_gpt2(const arch_keys& keys, model_config& into) {
  detail::set_gpt2_traits(into);
  into.norm_eps = static_cast<float>(keys.needed<double>("attention.layer_norm_epsilon"));
}

void read_llama_like(const arch_keys& keys, const detail::gguf_facts& facts, model_config& into) {
  into.norm_eps = static_cast<float>(keys.needed<double>("attention.layer_norm_rms_epsilon"));
  into.qk_norm = into.family == "qwen3";
  into.qkv_bias = into.family == "qwen2" || facts.qkv_bias;
  into.out_bias = facts.out_bias;
  into.mlp_bias = facts.mlp_bias;
  read_rope(keys, facts, into);
  read_windows(keys, into);
}

std::int64_t vocabulary_size(const gguf_file& file, const arch_keys& keys, const detail::gguf_facts& facts) {
  if (facts.vocab_size) return *facts.vocab_size;
  if (const auto* tokens = file.find<std::vector<std::string>>("tokenizer.ggml.tokens"))
    return static_cast<std::int64_t>(tokens->size());
  return keys.size("vocab_size");
}

/// What ends the answers of published models. Converters name one of these, and the models know more.
constexpr std::array<std::string_view, 6> usual_ends = {"<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
                                                        "<|eom_id|>", "<|end_of_text|>", "<|end|>"};

void read_tokens(const gguf_file& file, model_config& into) {
  for (const auto* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    detail::add_end_token(file.get<std::int64_t>(key).value_or(-1), into);
  if (const auto* tokens = file.find<std::vector<std::string>>("tokenizer.ggml.tokens"))
    for (const std::string_view end : usual_ends)
      if (const auto found = std::find(tokens->begin(), tokens->end(), end); found != tokens->end())
        detail::add_end_token(found - tokens->begin(), into);
  detail::set_begin_token(file.get<std::int64_t>("tokenizer.ggml.bos_token_id").value_or(-1), into);
}

}  // namespace

model_config config_from_gguf(const gguf_file& file) {
  const arch_keys keys(file, architecture_of(file));
  const auto facts = detail::read_facts(file);
  model_config into;
  into.family = keys.arch();
  into.tied_embeddings = facts.tied_embeddings;
  read_sizes(keys, into);
  into.vocab_size = vocabulary_size(file, keys, facts);
  if (into.family == "gpt2")
    read_gpt2(keys, into);
  else
    read_llama_like(keys, facts, into);
  read_tokens(file, into);
  check(into, file.name);
  return into;
}

}  // namespace troupe
