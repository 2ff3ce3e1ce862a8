#include "model/lora/adapter_write.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/lora/factor_order.hpp"
#include "model/lora/peft_names.hpp"

namespace troupe {
namespace {

/// Linear layers that PEFT has as one: they have their A in common.
struct peft_module {
  std::string name;
  std::vector<const adapter_part*> parts;

  const adapter_part& first() const { return *parts.front(); }
};

std::vector<peft_module> modules_of(const adapter_file& adapter, const model_config& base, const std::string& where) {
  std::vector<peft_module> modules;
  for (const adapter_part& part : adapter.parts) {
    std::string name = detail::peft_name(base, part.layer, part.kind);
    if (modules.empty() || modules.back().name != name) modules.push_back({std::move(name), {}});
    peft_module& own = modules.back();
    own.parts.push_back(&part);
    if (part.rank != own.first().rank || part.a != own.first().a)
      refuse("{}: {} and {} are one layer in PEFT, but have different factors A: train them as one", where,
             own.first().name(), part.name());
  }
  return modules;
}

/// Of the whole layer, in whose order its linear layers are put; `kinds` are in it.
std::vector<float> joined_b(const peft_module& module, const std::vector<linear_kind>& kinds,
                            const std::string& where) {
  if (module.parts.size() != kinds.size())
    refuse("{}: adapts {} alone, which is one layer with others in PEFT: train them as one", where,
           module.first().name());
  std::vector<float> all;
  for (const linear_kind kind : kinds) {
    const auto& b = (*std::ranges::find(module.parts, kind, &adapter_part::kind))->b;
    all.insert(all.end(), b.begin(), b.end());
  }
  return all;
}

}  // namespace

std::string peft_config_text(const peft_description& adapter) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::object(), alphas = ranks;
  for (const auto& [pattern, rank] : adapter.factors.rank_pattern) ranks[pattern] = rank;
  for (const auto& [pattern, alpha] : adapter.factors.alpha_pattern) alphas[pattern] = alpha;
  const nlohmann::ordered_json config{{"peft_type", "LORA"},
                                      {"task_type", "CAUSAL_LM"},
                                      {"base_model_name_or_path", adapter.base_name},
                                      {"bias", "none"},
                                      {"fan_in_fan_out", adapter.fan_in_fan_out},
                                      {"inference_mode", true},
                                      {"init_lora_weights", true},
                                      {"r", adapter.factors.rank},
                                      {"lora_alpha", adapter.factors.alpha},
                                      {"lora_dropout", adapter.dropout},
                                      {"use_rslora", adapter.factors.rank_stabilized},
                                      {"rank_pattern", ranks},
                                      {"alpha_pattern", alphas},
                                      {"target_modules", adapter.targets}};
  return config.dump(2) + "\n";
}

void write_adapter(const adapter_file& adapter, const model_config& base, const std::filesystem::path& folder,
                   const std::string& where) {
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> values;
  peft_description description{.factors = adapter.factors, .targets = {}, .fan_in_fan_out = base.file.is_conv1d};
  for (const peft_module& each : modules_of(adapter, base, where)) {
    const auto kinds = detail::find_linears(each.name, base).kinds;
    const std::int64_t rank = each.first().rank;
    const auto add = [&](std::string_view side, std::int64_t columns, std::vector<float> factor) {
      const auto name = fmt::format("{}{}.lora_{}.weight", adapter_key_prefix, each.name, side);
      tensors.push_back({name, dtype::f32, {static_cast<std::int64_t>(factor.size()) / columns, columns}});
      values.push_back(std::move(factor));
    };
    const factor_order order(base, kinds.front());
    add("A", static_cast<std::int64_t>(each.first().a.size()) / rank, order.peft_a(each.first().a, rank));
    add("B", rank, order.peft_b(joined_b(each, kinds, where), rank));
    description.targets.insert(each.name);
  }
  write_safetensors(folder / adapter_weights_name, tensors, values, {{"format", "pt"}});
  write_file(folder / adapter_config_name, peft_config_text(description));
}

}  // namespace troupe
