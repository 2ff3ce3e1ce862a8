// DeepSeek's latent attention and its mixtures, which GLM's small models have, too.
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/hf_families.hpp"
#include "model/formats/hf_own_fields.hpp"
#include "model/formats/hf_values.hpp"

namespace troupe::detail::own_fields {
namespace {

using fields = json_fields<nlohmann::json>;

/// What config.json may leave out.
struct latent_defaults {
  std::int64_t query_rank, plain, value;
};

void read_latent(const fields& config, const latent_defaults& usual, model_config& into) {
  constexpr std::string_view query_rank = "q_lora_rank";
  into.latent.rank = positive(config, "kv_lora_rank", 512);
  into.latent.query_rank = config.names(query_rank) ? size_or_none(config, query_rank) : usual.query_rank;
  into.latent.turned = positive(config, "qk_rope_head_dim", 64);
  into.latent.plain = positive(config, "qk_nope_head_dim", usual.plain);
  into.latent.value = positive(config, "v_head_dim", usual.value);
  set_latent_heads(into);
  refuse_unless(config, "rope_interleave", true);
}

/// YaRN's stretch makes scores larger, too, by its square.
void read_score_dim(const fields& config, model_config& into) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const auto* object = config.find(key);
    if (!object || object->empty()) continue;
    const fields rope(*object, config.where() + ": " + std::string(key));
    if (rope.text("rope_type").value_or(rope.text("type").value_or("default")) == "default") break;
    return set_latent_scores(rope.number("factor").value_or(1), rope.number("mscale_all_dim").value_or(0), into);
  }
  set_latent_scores(1, 0, into);
}

void check_scoring(const fields& config, std::string_view wanted) {
  if (const std::string given = config.text("scoring_func").value_or(std::string(wanted)); given != wanted)
    refuse("{}: the scoring_func \"{}\" is not supported: {} is", config.where(), given.substr(0, 80), wanted);
  if (config.integer("moe_layer_freq").value_or(1) != 1)
    refuse("{}: a \"moe_layer_freq\" above 1 is not supported", config.where());
}

void read_groups(const fields& config, std::int64_t usual, std::int64_t usual_taken, model_config& into) {
  into.experts.groups = config.integer("n_group").value_or(usual);
  into.experts.groups_taken = config.integer("topk_group").value_or(usual_taken);
}

}  // namespace

void deepseek2(const fields& config, const family_defaults&, model_config& into) {
  read_latent(config, {1536, 128, 128}, into);
  read_score_dim(config, into);
  read_shared_experts(config, 2, into);
  check_scoring(config, "softmax");
  const std::string method = config.text("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") return read_groups(config, 1, 1, into);
  if (method != "greedy")
    refuse("{}: the topk_method \"{}\" is not supported: greedy and group_limited_greedy are", config.where(),
           method.substr(0, 80));
}

void deepseek3(const fields& config, const family_defaults& defaults, model_config& into) {
  const bool is_glm = defaults.type == "glm4_moe_lite";
  read_latent(config, is_glm ? latent_defaults{768, 192, 256} : latent_defaults{1536, 128, 128}, into);
  read_score_dim(config, into);
  read_shared_experts(config, 1, into);
  check_scoring(config, "sigmoid");
  into.experts.sigmoid_shares = into.experts.choice_bias = true;
  into.experts.group_best = 2;
  read_groups(config, is_glm ? 1 : 8, is_glm ? 1 : 4, into);
}

}  // namespace troupe::detail::own_fields
