#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/size_text.hpp"
#include "cli/commands.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/packed_file.hpp"
#include "model/arch/quantize.hpp"
#include "model/arch/weight_list.hpp"
#include "model/text/chat_sources.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

using nlohmann::ordered_json;

struct inspect_options {
  model_options model;
  bool json = false;
};

std::int64_t parameters_of(const model_config& config) {
  std::int64_t count = 0;
  const auto add = [&](const std::string&, std::int64_t rows, std::int64_t columns) { count += rows * columns; };
  visit_weights(config, {add, add});
  return count;
}

struct type_total {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

/// By the type that the file gives; of a packed file by scheme, which its metadata has under each matrix's name.
std::map<std::string, type_total> types_of(const tensor_set& set) {
  std::map<std::string, type_total> types;
  for (const auto& [name, tensor] : set.tensors) {
    if (name == packed_digests_key) continue;  // describes weights, but is none
    const auto packed = is_packed(set) ? set.metadata.find(name) : set.metadata.end();
    const std::string type = packed == set.metadata.end() ? std::string(name_of(tensor.type))
                                                          : packed->second.substr(0, packed->second.find(' '));
    type_total& total = types[type];
    ++total.tensors;
    total.bytes += static_cast<std::int64_t>(tensor.data.size());
  }
  return types;
}

ordered_json config_json(const model_config& config) {
  return {{"family", config.family},
          {"parameters", parameters_of(config)},
          {"layers", config.layers},
          {"hidden", config.hidden},
          {"heads", config.heads},
          {"kv_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"ffn", config.ffn},
          {"experts", config.experts.count},
          {"experts_taken", config.experts.taken},
          {"shared_ffn", config.experts.shared_ffn},
          {"vocab", config.vocab_size},
          {"context", config.context},
          {"tied_embeddings", config.tied_embeddings}};
}

ordered_json tensors_json(const tensor_set& set) {
  ordered_json types = ordered_json::object();
  type_total all;
  for (const auto& [type, total] : types_of(set)) {
    types[type] = {{"tensors", total.tensors}, {"bytes", total.bytes}};
    all.tensors += total.tensors;
    all.bytes += total.bytes;
  }
  return {{"count", all.tensors}, {"bytes", all.bytes}, {"types", std::move(types)}};
}

/// null where the model has no tokenizer.
ordered_json tokenizer_json(const std::string& model) {
  const std::string kind = tokenizer_kind(model);
  if (kind.empty()) return nullptr;
  const auto tokens = load_tokenizer(model);
  const auto special = [&](std::optional<token_id> id) {
    return id ? ordered_json{{"id", *id}, {"text", tokens->bytes_of(*id)}} : ordered_json(nullptr);
  };
  std::int64_t specials = 0;
  for (token_id id = 0; id < tokens->size(); ++id) specials += tokens->is_special(id);
  return {{"kind", kind},
          {"vocab", tokens->size()},
          {"special", specials},
          {"bos", special(tokens->bos())},
          {"eos", special(tokens->eos())}};
}

ordered_json kv_json(const model_config& config) {
  ordered_json out;
  for (const kv_kind kind : all_kv_kinds)
    out[std::string(name_of(kind))] = kv_storage::bytes_per_block(config, kind) / block_tokens;
  return out;
}

ordered_json describe(const std::string& path) {
  const model_files files = open_model(path);
  const tensor_set& set = files.file_tensors();
  ordered_json out{{"model", path}, {"format", files.gguf ? "gguf" : "safetensors"}};
  out.update(config_json(files.config));
  const auto quantization = set.metadata.find(std::string(packed_quantization_key));
  if (is_packed(set) && quantization != set.metadata.end())
    out["quantization"] = quantization->second;
  else if (files.config.codes.format != code_format::none)
    out["quantization"] = name_of(files.config.codes.format);
  else
    out["quantization"] = nullptr;
  out["tensors"] = tensors_json(set);
  out["tokenizer"] = tokenizer_json(path);
  out["chat_template"] = find_chat_sources(path).has_value();
  for (const scheme kind : all_schemes) out["memory"][std::string(name_of(kind))] = packed_size(files.config, kind);
  out["kv_bytes_per_token"] = kv_json(files.config);
  out["state_bytes_per_sequence"] = files.config.state_bytes();
  return out;
}

std::string count_text(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.2f} billion", static_cast<double>(count) * 1e-9);
  return count >= 1'000'000 ? fmt::format("{:.1f} million", static_cast<double>(count) * 1e-6)
                            : fmt::format("{}", count);
}

std::string token_text(const ordered_json& token) {
  return token.is_null() ? "none"
                         : fmt::format("{} {}", token["id"].get<int>(), one_line(token["text"].get<std::string>()));
}

std::string tokenizer_text(const ordered_json& tokens) {
  if (tokens.is_null()) return "none";
  return fmt::format("{}, {} tokens, {} special, BOS {}, EOS {}", tokens["kind"].get<std::string>(),
                     tokens["vocab"].get<int>(), tokens["special"].get<int>(), token_text(tokens["bos"]),
                     token_text(tokens["eos"]));
}

std::string sizes_text(const ordered_json& sizes) {
  std::string out;
  for (const auto& [name, bytes] : sizes.items())
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, size_text(bytes.get<std::uint64_t>()));
  return out;
}

std::string tensors_text(const ordered_json& tensors) {
  std::string out =
      fmt::format("{}, {}", tensors["count"].get<int>(), size_text(tensors["bytes"].get<std::uint64_t>()));
  for (const auto& [type, total] : tensors["types"].items())
    out += fmt::format("; {} {} {}", total["tensors"].get<int>(), type, size_text(total["bytes"].get<std::uint64_t>()));
  return out;
}

std::string experts_text(const ordered_json& all) {
  const auto experts = all["experts"].get<std::int64_t>(), taken = all["experts_taken"].get<std::int64_t>();
  if (experts == 0) return "";
  const auto shared = all["shared_ffn"].get<std::int64_t>();
  return fmt::format(" of {} experts (a token takes {}{})", experts, taken,
                     shared > 0 ? fmt::format(", and an mlp of {}", shared) : "");
}

std::string states_text(const ordered_json& all) {
  const auto bytes = all["state_bytes_per_sequence"].get<std::int64_t>();
  return bytes > 0 ? fmt::format("states        {} per sequence\n", size_text(bytes)) : "";
}

std::string to_text(const ordered_json& all) {
  const auto number = [&](const char* key) { return all[key].get<std::int64_t>(); };
  return fmt::format(
      "{}: {}, {} parameters, {}\n"
      "layers        {}, hidden {}, ffn {}{}, heads {} of {}, kv heads {}\n"
      "vocabulary    {}{}\n"
      "context       {} tokens\n"
      "quantization  {}\n"
      "tensors       {}\n"
      "tokenizer     {}\n"
      "chat template {}\n"
      "memory        {}\n"
      "KV per token  {}\n{}",
      all["model"].get<std::string>(), all["family"].get<std::string>(), count_text(number("parameters")),
      all["format"].get<std::string>(), number("layers"), number("hidden"), number("ffn"), experts_text(all),
      number("heads"), number("head_dim"), number("kv_heads"), number("vocab"),
      all["tied_embeddings"].get<bool>() ? ", embeddings are the head too" : "", number("context"),
      all["quantization"].is_null() ? "the tensors' own" : all["quantization"].get<std::string>(),
      tensors_text(all["tensors"]), tokenizer_text(all["tokenizer"]), all["chat_template"].get<bool>() ? "yes" : "no",
      sizes_text(all["memory"]), sizes_text(all["kv_bytes_per_token"]), states_text(all));
}

int inspect(const inspect_options& options) {
  const ordered_json all = describe(options.model.path);
  if (options.json)
    print_json(all);
  else
    print(to_text(all));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "inspect", "Show what a model is, and the memory it takes", inspect);
  add_model(own, options.model);
  own.add_flag("--json", options.json, "print it as JSON");
}

}  // namespace troupe
