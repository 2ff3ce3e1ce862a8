// DeepSeek's latent attention and its mixtures, which GLM's small models have, too.
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/config_parts.hpp"
#include "model/formats/hf/hf_own_fields.hpp"
#include "model/formats/hf/hf_values.hpp"

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

void check_scoring(const fields& config, std::string_view wanted) {
  if (const std::string given = config.text("scoring_func").value_or(std::string(wanted)); given != wanted)
    refuse("{}: the scoring_func \"{}\" is not supported: {} is", config.where(), given.substr(0, 80), wanted);
  if (config.integer("moe_layer_freq").value_or(1) != 1)
    refuse("{}: a \"moe_layer_freq\" above 1 is not supported", config.where());
}

struct group_defaults {
  std::int64_t count, taken;
};

struct third_defaults {
  latent_defaults latent;
  group_defaults groups;
  double share_factor;
};

void read_groups(const fields& config, const group_defaults& usual, model_config& into) {
  into.experts.groups = config.integer("n_group").value_or(usual.count);
  into.experts.groups_taken = config.integer("topk_group").value_or(usual.taken);
}

/// Of experts that are chosen by sigmoids and biases.
void read_third(const fields& config, const third_defaults& usual, model_config& into) {
  read_latent(config, usual.latent, into);
  read_shared_experts(config, 1, usual.share_factor, into);
  check_scoring(config, "sigmoid");
  into.experts.sigmoid_shares = into.experts.choice_bias = true;
  into.experts.group_best = 2;
  read_groups(config, usual.groups, into);
}

}  // namespace

void deepseek2(const fields& config, model_config& into) {
  read_latent(config, {.query_rank = 1536, .plain = 128, .value = 128}, into);
  read_shared_experts(config, 2, 1.0, into);
  check_scoring(config, "softmax");
  refuse_unless(config, "norm_topk_prob", false);
  const std::string method = config.text("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") return read_groups(config, {1, 1}, into);
  if (method != "greedy")
    refuse("{}: the topk_method \"{}\" is not supported: greedy and group_limited_greedy are", config.where(),
           method.substr(0, 80));
}

void deepseek3(const fields& config, model_config& into) {
  read_third(config,
             {.latent = {.query_rank = 1536, .plain = 128, .value = 128},
              .groups = {.count = 8, .taken = 4},
              .share_factor = 2.5},
             into);
}

void glm_lite(const fields& config, model_config& into) {
  read_third(config,
             {.latent = {.query_rank = 768, .plain = 192, .value = 256},
              .groups = {.count = 1, .taken = 1},
              .share_factor = 1.8},
             into);
}

}  // namespace troupe::detail::own_fields
