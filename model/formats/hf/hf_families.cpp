#include "model/formats/hf/hf_families.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;

// A family: its names, its numbers, and then what sets it apart.
// clang-format off
constexpr family_defaults families[] = {
    {.name = "gpt2", .type = "gpt2", .architecture = "GPT2LMHeadModel",
     .vocab = 50257, .hidden = 768, .layers = 12, .heads = 12, .context = 1024, .norm_eps = 1e-5, .tied = true,
     .bos = 50256, .eos = 50256},
    {.name = "llama", .type = "llama", .architecture = "LlamaForCausalLM", .other_architecture = "LLaMAForCausalLM",
     .vocab = 32000, .ffn = 11008, .context = 2048, .bos = 1, .eos = 2,
     .own = own_fields::llama},
    {.name = "mistral", .type = "mistral", .architecture = "MistralForCausalLM",
     .vocab = 32000, .kv_heads = 8, .ffn = 14336, .context = 131072, .bos = 1, .eos = 2,
     .asks_for_biases = false, .windows = {.which = window_layers::all, .size = 4096}},
    {.name = "ministral3", .type = "ministral3", .architecture = "Ministral3ForCausalLM",
     .vocab = 131072, .layers = 34, .kv_heads = 8, .head_dim = 128, .ffn = 14336, .context = 262144, .norm_eps = 1e-5,
     .theta = 1e6, .bos = 1, .eos = 2,
     .asks_for_biases = false, .windows = {.which = window_layers::all, .in_all_layers = true},
     .own = own_fields::ministral},
    {.name = "qwen2", .type = "qwen2", .architecture = "Qwen2ForCausalLM",
     .vocab = 151936, .kv_heads = 32, .ffn = 22016, .context = 32768,
     .asks_for_biases = false,
     .windows = {.which = window_layers::from_bound, .size = 4096, .by_flag = true, .bound = 28}},
    {.name = "qwen3", .type = "qwen3", .architecture = "Qwen3ForCausalLM",
     .vocab = 151936, .kv_heads = 32, .head_dim = 128, .ffn = 22016, .context = 32768,
     .windows = {.which = window_layers::from_bound, .size = 4096, .by_flag = true, .bound = 28}},
    {.name = "qwen3moe", .type = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM",
     .vocab = 151936, .hidden = 2048, .layers = 24, .kv_heads = 4, .ffn = 6144, .context = 32768,
     .mixture = {.key = "num_experts", .experts = 128, .taken = 8, .ffn = 768, .asks_for_whole_shares = true},
     .windows = {.which = window_layers::all, .size = 4096, .by_flag = true, .in_all_layers = true},
     .own = own_fields::qwen3_moe},
    {.name = "qwen3next", .type = "qwen3_next", .architecture = "Qwen3NextForCausalLM",
     .vocab = 151936, .hidden = 2048, .layers = 48, .heads = 16, .kv_heads = 2, .head_dim = 256, .ffn = 5632,
     .context = 32768,
     .mixture = {.key = "num_experts", .experts = 512, .taken = 10, .ffn = 512, .shared_ffn = 512,
                 .asks_for_whole_shares = true, .whole_shares = true},
     .mixer = mixer_kind::delta, .turned_part = 0.25, .own = own_fields::linear_attention},
    {.name = "qwen35", .type = "qwen3_5_text", .architecture = "Qwen3_5ForCausalLM",
     .other_architecture = "Qwen3_5TextModel",
     .vocab = 248320, .heads = 16, .kv_heads = 4, .head_dim = 256, .ffn = 12288, .context = 32768,
     .mixer = mixer_kind::delta, .turned_part = 0.25, .own = own_fields::linear_attention},
    {.name = "qwen35moe", .type = "qwen3_5_moe_text", .architecture = "Qwen3_5MoeForCausalLM",
     .other_architecture = "Qwen3_5MoeTextModel",
     .vocab = 248320, .hidden = 2048, .layers = 40, .heads = 16, .kv_heads = 2, .head_dim = 256, .ffn = 512,
     .context = 32768,
     .mixture = {.key = "num_experts", .experts = 256, .taken = 8, .ffn = 512, .shared_ffn = 512},
     .mixer = mixer_kind::delta, .turned_part = 0.25, .own = own_fields::linear_attention},
    {.name = "qwen2moe", .type = "qwen2_moe", .architecture = "Qwen2MoeForCausalLM",
     .vocab = 151936, .hidden = 2048, .layers = 24, .heads = 16, .kv_heads = 16, .ffn = 5632, .context = 32768,
     .asks_for_biases = false,
     .mixture = {.key = "num_experts", .experts = 60, .taken = 4, .ffn = 1408, .shared_ffn = 5632,
                 .asks_for_whole_shares = true},
     .windows = {.which = window_layers::even_below_bound, .size = 4096, .by_flag = true, .bound = 28},
     .own = own_fields::qwen2_moe},
    {.name = "mixtral", .type = "mixtral", .architecture = "MixtralForCausalLM",
     .vocab = 32000, .kv_heads = 8, .ffn = 14336, .context = 131072, .norm_eps = 1e-5, .theta = 1e6, .bos = 1,
     .eos = 2,
     .asks_for_biases = false,
     .mixture = {.key = "num_local_experts", .experts = 8, .taken = 2},
     .windows = {.which = window_layers::all, .in_all_layers = true}},
    {.name = "olmoe", .type = "olmoe", .architecture = "OlmoeForCausalLM",
     .vocab = 50304, .hidden = 2048, .layers = 16, .heads = 16, .ffn = 2048, .context = 4096, .norm_eps = 1e-5,
     .eos = 50279,
     .mixture = {.key = "num_experts", .experts = 64, .taken = 8, .asks_for_whole_shares = true}, .own = own_fields::olmoe},
    {.name = "glm4moe", .type = "glm4_moe", .architecture = "Glm4MoeForCausalLM",
     .vocab = 151552, .layers = 46, .heads = 96, .kv_heads = 8, .ffn = 10944, .context = 131072, .norm_eps = 1e-5,
     .mixture = {.key = "n_routed_experts", .experts = 128, .taken = 8, .ffn = 1408, .asks_for_whole_shares = true,
                 .whole_shares = true, .dense_key = "first_k_dense_replace", .dense_layers = 1},
     .turned_part = 0.5, .own = own_fields::glm_moe},
    {.name = "deepseek", .type = "deepseek_v2", .architecture = "DeepseekV2ForCausalLM",
     .vocab = 102400, .ffn = 11008, .context = 2048, .bos = 1, .eos = 2,
     .mixture = {.key = "n_routed_experts", .experts = 64, .ffn = 1407, .asks_for_whole_shares = true,
                 .dense_key = "first_k_dense_replace"},
     .own = own_fields::deepseek2},
    {.name = "deepseek", .type = "deepseek_v3", .architecture = "DeepseekV3ForCausalLM",
     .vocab = 129280, .hidden = 7168, .layers = 61, .heads = 128, .ffn = 18432, .context = 4096, .bos = 0, .eos = 1,
     .mixture = {.key = "n_routed_experts", .experts = 256, .taken = 8, .ffn = 2048, .asks_for_whole_shares = true,
                 .whole_shares = true, .dense_key = "first_k_dense_replace", .dense_layers = 3},
     .own = own_fields::deepseek3},
    {.name = "deepseek", .type = "glm4_moe_lite", .architecture = "Glm4MoeLiteForCausalLM",
     .vocab = 154880, .hidden = 2048, .layers = 47, .heads = 20, .ffn = 10240, .context = 202752, .norm_eps = 1e-5,
     .bos = 0, .eos = 1,
     .mixture = {.key = "n_routed_experts", .experts = 64, .taken = 4, .ffn = 1536, .asks_for_whole_shares = true,
                 .whole_shares = true, .dense_key = "first_k_dense_replace", .dense_layers = 1},
     .own = own_fields::glm_lite},
    {.name = "glm", .type = "glm", .architecture = "GlmForCausalLM",
     .vocab = 151552, .layers = 40, .kv_heads = 2, .head_dim = 128, .ffn = 13696, .context = 131072,
     .norm_eps = 1.5625e-7, .eos = 151329,
     .attention_bias = true, .turned_part = 0.5, .own = own_fields::glm},
    {.name = "glm4", .type = "glm4", .architecture = "Glm4ForCausalLM",
     .vocab = 151552, .layers = 40, .kv_heads = 2, .head_dim = 128, .ffn = 13696, .context = 131072,
     .norm_eps = 1.5625e-7, .eos = 151329,
     .attention_bias = true, .turned_part = 0.5, .own = own_fields::glm},
    {.name = "ernie4_5", .type = "ernie4_5", .architecture = "Ernie4_5ForCausalLM",
     .other_architecture = "Ernie4_5_ForCausalLM",
     .vocab = 103424, .hidden = 1024, .layers = 18, .heads = 16, .kv_heads = 2, .head_dim = 128, .ffn = 3072,
     .context = 131072, .norm_eps = 1e-5, .theta = 5e5, .tied = true, .bos = 1, .eos = 2,
     .own = own_fields::ernie},
    {.name = "ernie4_5-moe", .type = "ernie4_5_moe", .architecture = "Ernie4_5_MoeForCausalLM",
     .other_architecture = "Ernie4_5_MoEForCausalLM",
     .vocab = 103424, .hidden = 2560, .layers = 28, .heads = 20, .kv_heads = 4, .head_dim = 128, .ffn = 12288,
     .context = 131072, .norm_eps = 1e-5, .theta = 5e5, .tied = true, .bos = 1, .eos = 2,
     .mixture = {.key = "moe_num_experts", .experts = 64, .taken_key = "moe_k", .taken = 6, .ffn = 1536,
                 .dense_key = "moe_layer_start_index", .dense_layers = 1, .step_key = "moe_layer_interval"},
     .own = own_fields::ernie_moe},
    {.name = "seed_oss", .type = "seed_oss", .architecture = "SeedOssForCausalLM",
     .vocab = 155136, .layers = 64, .heads = 80, .kv_heads = 8, .head_dim = 128, .ffn = 27648, .context = 524288,
     .bos = 0, .eos = 2,
     .attention_bias = true, .own = own_fields::seed},
    {.name = "arcee", .type = "arcee", .architecture = "ArceeForCausalLM",
     .vocab = 32000, .hidden = 2560, .ffn = 18432, .context = 4096, .norm_eps = 1e-5, .bos = 128000, .eos = 128001,
     .own = own_fields::llama},
    {.name = "exaone4", .type = "exaone4", .architecture = "Exaone4ForCausalLM",
     .vocab = 102400, .kv_heads = 32, .ffn = 16384, .context = 2048, .norm_eps = 1e-5, .bos = 0, .eos = 2,
     .asks_for_biases = false, .by_layer = own_layers::exaone4},
    {.name = "minimax-m2", .type = "minimax_m2", .architecture = "MiniMaxM2ForCausalLM",
     .vocab = 200064, .hidden = 3072, .layers = 62, .heads = 48, .kv_heads = 8, .head_dim = 128, .ffn = 1536,
     .context = 196608, .theta = 5e6, .bos = 200034, .eos = 200020,
     .asks_for_biases = false,
     .mixture = {.key = "num_local_experts", .experts = 256, .taken = 8}, .own = own_fields::minimax},
    {.name = "cohere", .type = "cohere", .architecture = "CohereForCausalLM",
     .vocab = 256000, .hidden = 8192, .layers = 40, .heads = 64, .ffn = 22528, .context = 8192, .norm_eps = 1e-5,
     .theta = 5e5, .tied = true, .bos = 5, .eos = 255001,
     .own = own_fields::cohere},
    {.name = "cohere2", .type = "cohere2", .architecture = "Cohere2ForCausalLM",
     .vocab = 256000, .hidden = 8192, .layers = 40, .heads = 64, .ffn = 22528, .context = 8192, .norm_eps = 1e-5,
     .tied = true, .bos = 5, .eos = 255001,
     .own = own_fields::cohere, .by_layer = own_layers::cohere2},
    {.name = "lfm2", .type = "lfm2", .architecture = "Lfm2ForCausalLM",
     .vocab = 65536, .hidden = 2560, .kv_heads = 8, .ffn = 12288, .context = 128000, .norm_eps = 1e-5, .theta = 1e6,
     .tied = true, .bos = 1, .eos = 2,
     .mixer = mixer_kind::convolution, .own = own_fields::lfm2},
    {.name = "lfm2moe", .type = "lfm2_moe", .architecture = "Lfm2MoeForCausalLM",
     .vocab = 65536, .hidden = 2048, .kv_heads = 8, .ffn = 7168, .context = 128000, .norm_eps = 1e-5, .theta = 1e6,
     .tied = true, .bos = 1, .eos = 2,
     .mixture = {.key = "num_experts", .experts = 32, .taken = 4, .ffn = 1792, .asks_for_whole_shares = true,
                 .whole_shares = true, .dense_key = "num_dense_layers", .dense_layers = 2},
     .mixer = mixer_kind::convolution, .own = own_fields::lfm2_moe},
    {.name = "gpt-oss", .type = "gpt_oss", .architecture = "GptOssForCausalLM",
     .vocab = 201088, .hidden = 2880, .layers = 36, .heads = 64, .kv_heads = 8, .head_dim = 64, .ffn = 2880,
     .context = 131072, .norm_eps = 1e-5, .theta = 150000.0,
     .attention_bias = true, .mixture = {.key = "num_local_experts", .experts = 128, .taken = 4},
     .windows = {.which = window_layers::even, .size = 128}, .own = own_fields::gpt_oss},
    {.name = "phi3", .type = "phi3", .architecture = "Phi3ForCausalLM",
     .vocab = 32064, .hidden = 3072, .ffn = 8192, .context = 4096, .norm_eps = 1e-5, .bos = 1, .eos = 32000,
     .asks_for_biases = false, .windows = {.which = window_layers::all, .in_all_layers = true}},
    {.name = "smollm3", .type = "smollm3", .architecture = "SmolLM3ForCausalLM",
     .vocab = 128256, .hidden = 2048, .layers = 36, .heads = 16, .kv_heads = 4, .ffn = 11008, .context = 32768,
     .theta = 2e6, .tied = true, .bos = 128000, .eos = 128001,
     .own = own_fields::llama, .by_layer = own_layers::smollm3},
    {.name = "granite", .type = "granite", .architecture = "GraniteForCausalLM",
     .vocab = 32000, .ffn = 11008, .context = 2048, .bos = 1, .eos = 2,
     .own = own_fields::granite},
    {.name = "granitemoe", .type = "granitemoe", .architecture = "GraniteMoeForCausalLM",
     .vocab = 32000, .ffn = 11008, .context = 2048, .bos = 1, .eos = 2,
     .mixture = {.key = "num_local_experts", .experts = 8, .taken = 2}, .own = own_fields::granite_moe},
    {.name = "granitehybrid", .type = "granitemoehybrid", .architecture = "GraniteMoeHybridForCausalLM",
     .vocab = 32000, .ffn = 11008, .context = 2048, .bos = 1, .eos = 2,
     .mixer = mixer_kind::delta, .own = own_fields::granite_hybrid, .by_layer = own_layers::granite_hybrid},
    {.name = "nemotronh", .type = "nemotron_h", .architecture = "NemotronHForCausalLM",
     .vocab = 131072, .kv_heads = 8, .head_dim = 128, .ffn = 21504, .context = 4096, .norm_eps = 1e-5, .bos = 1, .eos = 2,
     .asks_for_biases = false, .own = own_fields::nemotron, .by_layer = own_layers::nemotron},
    {.name = "olmo2", .type = "olmo2", .architecture = "Olmo2ForCausalLM",
     .vocab = 50304, .ffn = 11008, .context = 2048, .norm_eps = 1e-5, .eos = 50279},
    {.name = "olmo3", .type = "olmo3", .architecture = "Olmo3ForCausalLM",
     .vocab = 50304, .ffn = 11008, .context = 2048, .norm_eps = 1e-5, .theta = 5e5, .eos = 50279,
     .two_ropes = true, .by_layer = own_layers::olmo3},
    {.name = "gemma2", .type = "gemma2", .architecture = "Gemma2ForCausalLM",
     .vocab = 256000, .hidden = 2304, .layers = 26, .heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216,
     .context = 8192, .tied = true, .bos = 2, .eos = 1,
     .windows = {.which = window_layers::even, .size = 4096}, .own = own_fields::gemma2},
    {.name = "gemma3", .type = "gemma3_text", .architecture = "Gemma3ForCausalLM",
     .other_architecture = "Gemma3TextModel",
     .vocab = 262208, .hidden = 2304, .layers = 26, .heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216,
     .context = 131072, .theta = 1e6, .tied = true, .bos = 2, .eos = 1,
     .two_ropes = true, .own = own_fields::gemma3, .by_layer = own_layers::gemma3},
    {.name = "gemma4", .type = "gemma4_text", .architecture = "Gemma4ForCausalLM",
     .other_architecture = "Gemma4TextModel",
     .vocab = 262144, .hidden = 2304, .layers = 30, .heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216,
     .context = 131072, .theta = 1e6, .tied = true, .bos = 2, .eos = 1,
     .two_ropes = true, .own = own_fields::gemma4, .by_layer = own_layers::gemma4},
};
// clang-format on

std::string supported() {
  std::vector<std::string_view> names;
  for (const auto& family : families) names.push_back(family.type);
  return fmt::format("supported are {}", fmt::join(names, ", "));
}

/// Models that were saved without their heads name the class within.
bool is_built_as(const family_defaults& family, std::string_view architecture) {
  if (architecture == family.architecture || architecture == family.other_architecture) return true;
  if (!architecture.ends_with("Model")) return false;
  const std::string bare(architecture.substr(0, architecture.size() - 5));
  return family.architecture == bare + "ForCausalLM" || family.architecture == bare + "LMHeadModel";
}

}  // namespace

const family_defaults& family_of(const fields& config) {
  const auto type = config.text("model_type");
  const auto architectures = config.texts("architectures");
  if (!type && (!architectures || architectures->empty()))
    refuse("{}: names neither model_type nor architectures: {}", config.where(), supported());
  for (const auto& family : families) {
    const bool typed = !type || *type == family.type;
    const bool built = !architectures || architectures->empty() ||
                       std::any_of(architectures->begin(), architectures->end(),
                                   [&](const std::string& architecture) { return is_built_as(family, architecture); });
    if (typed && built) return family;
  }
  refuse("{}: model_type \"{}\" with architectures [{}] is not supported: {}", config.where(),
         type.value_or("").substr(0, 80), fmt::join(architectures.value_or(std::vector<std::string>{}), ", "),
         supported());
}

}  // namespace troupe::detail
