#include "model/tokenizer/tokenizer_config.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/json_parts.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;

constexpr std::size_t largest_config = std::size_t{256} << 20;
constexpr std::array special_lists{"additional_special_tokens", "extra_special_tokens"};
constexpr const char* further_tokens = "added_tokens.json";  ///< a file; here also a key, for what it has

/// Lists of both files count.
void take_special_tokens(nlohmann::json&& map, nlohmann::json& config) {
  for (auto& [key, value] : map.get_ref<nlohmann::json::object_t&>()) {
    const bool is_list = std::find(special_lists.begin(), special_lists.end(), key) != special_lists.end();
    if (!is_list && !key.ends_with("_token")) continue;
    auto& known = config[key];
    if (is_list && known.is_array() && value.is_array())
      known.insert(known.end(), value.begin(), value.end());
    else
      known = std::move(value);
  }
}

/// A token is written as a text, or as an object with its text and its flags. An empty one is none.
std::optional<std::string> token_text(const fields& all, std::string_view key) {
  const auto* value = all.find(key);
  if (!value) return std::nullopt;
  if (!value->is_string() && !value->is_object())
    refuse("{}: \"{}\" should be a text or an object with \"content\"", all.where(), key);
  const auto text =
      value->is_string() ? all.text(key) : fields(*value, all.where() + ": " + std::string(key)).text("content");
  if (!text) refuse("{}: \"{}\" has no \"content\"", all.where(), key);
  return text->empty() ? std::nullopt : text;
}

end_rule read_end(const fields& all, std::string_view key, std::string_view usual, std::string_view add_key) {
  return {.name = token_text(all, key), .usual = all.names(key) ? "" : usual, .add = all.boolean(add_key)};
}

std::vector<added_token> read_added(const fields& all) {
  const auto* list = all.find("added_tokens_decoder");
  if (!list) return {};
  if (!list->is_object()) refuse("{}: \"added_tokens_decoder\" should be an object", all.where());
  std::vector<added_token> out;
  for (const auto& [key, value] : list->items()) {
    const auto where = all.where() + ": added_tokens_decoder[\"" + key.substr(0, 32) + "\"]";
    if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos)
      refuse("{}: the key should be a token id", where);
    out.push_back(read_added_token(value, std::stoi(key), where));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

bool is_special(const nlohmann::json& config, const std::string& text) {
  const auto is_text = [&](const nlohmann::json& token) {
    return token == text || (token.is_object() && token.value("content", nlohmann::json()) == text);
  };
  for (const auto& [key, value] : config.items()) {
    if (key.ends_with("_token") && is_text(value)) return true;
    const bool is_list = std::find(special_lists.begin(), special_lists.end(), key) != special_lists.end();
    if (is_list && value.is_array() && std::any_of(value.begin(), value.end(), is_text)) return true;
  }
  return false;
}

/// {"<|im_start|>": 32001}, whose texts alone tell nothing of their kind.
std::vector<added_token> read_further(const nlohmann::json& config, const std::string& config_file) {
  const auto list = config.find(further_tokens);
  if (list == config.end()) return {};
  const auto where = (std::filesystem::path(config_file).parent_path() / further_tokens).string();
  std::vector<added_token> out;
  for (const auto& [text, id] : list->items()) {
    if (!id.is_number_unsigned() || id > INT32_MAX)
      refuse("{}: \"{}\" should have a token id", where, text.substr(0, 64));
    const nlohmann::json entry{{"content", text}, {"special", is_special(config, text)}};
    out.push_back(read_added_token(entry, id.get<token_id>(), where));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

/// transformers 5 writes extra_special_tokens: a list, or an object whose keys are names of the model's own.
std::vector<added_token> read_special(const fields& all) {
  std::vector<added_token> out;
  for (const char* key : special_lists) {
    const auto* list = all.find(key);
    if (!list || !list->is_structured()) continue;
    for (const auto& value : *list) {
      auto entry = value.is_string() ? nlohmann::json{{"content", value}} : value;
      if (entry.is_object()) entry["special"] = true;
      out.push_back(read_added_token(entry, -1, all.where() + ": " + key));
    }
  }
  return out;
}

bool is_llamas(std::string_view kind) {
  return kind == "LlamaTokenizer" || kind == "LlamaTokenizerFast" || kind == "CodeLlamaTokenizer" ||
         kind == "CodeLlamaTokenizerFast";
}

std::optional<token_id> first_known(const vocabulary& tokens, std::initializer_list<std::string_view> names) {
  for (const auto name : names)
    if (const auto id = tokens.find(name); id && tokens.is_special(*id)) return id;
  return std::nullopt;
}

token_id known(const vocabulary& tokens, const std::string& name, const std::string& where, std::string_view key) {
  const auto id = tokens.find(name);
  if (!id)
    refuse(
        "{}: \"{}\" is \"{}\", which is no token of the vocabulary: add it to \"added_tokens_decoder\" with its id, or "
        "set it to null (in a special_tokens_map.json, too)",
        where, key, name.substr(0, 100));
  return *id;
}

/// What a text begins or ends with, and what puts it there.
struct text_end {
  std::optional<token_id>& token;
  std::vector<token_id>& list;
  bool at_front;
  const char *name_key, *add_key;
};

/// `usual`: of tokenizers without a file that says more.
void settle(const end_rule& rule, const text_end& end, std::initializer_list<std::string_view> usual,
            const tokenizer_config& config, const vocabulary& tokens) {
  const auto& [token, list, at_front, name_key, add_key] = end;
  if (rule.name)
    token = known(tokens, *rule.name, config.where, name_key);
  else if (const auto of_class = tokens.find(rule.usual))
    token = of_class;
  else if (!token && !list.empty())
    token = at_front ? list.front() : list.back();
  else if (!token && !config.present)
    token = first_known(tokens, usual);
  if (!rule.add) return;
  if (*rule.add && !token) refuse("{}: \"{}\" is true, but no such token is named", config.where, add_key);
  const bool there = token && std::find(list.begin(), list.end(), *token) != list.end();
  if (*rule.add && !there) list = {*token};  // in place of another that the file's template has, as Llama's classes do
  if (!*rule.add && there) std::erase(list, *token);
}

}  // namespace

std::string tokenizer_config_text(const std::filesystem::path& folder) {
  const auto file = folder / "tokenizer_config.json", map_file = folder / "special_tokens_map.json",
             further_file = folder / further_tokens;
  std::string text = path_exists(file) ? read_text(file, largest_config) : "";
  if (!path_exists(map_file) && !path_exists(further_file)) return text;
  auto config = text.empty() ? nlohmann::json::object() : parse_json(text, file.string());
  if (!config.is_object() || config.contains("added_tokens_decoder")) return text;
  const auto read_object = [](const std::filesystem::path& from) {
    auto object = read_json(from, largest_config);
    if (!object.is_object()) refuse("{}: should be a JSON object", from.string());
    return object;
  };
  if (path_exists(map_file)) take_special_tokens(read_object(map_file), config);
  if (path_exists(further_file)) config[further_tokens] = read_object(further_file);
  return config.dump();
}

tokenizer_config read_tokenizer_config(std::string_view text, const std::string& beside) {
  tokenizer_config config;
  config.where = (std::filesystem::path(beside).parent_path() / "tokenizer_config.json").string();
  if (text.empty()) return config;
  const auto root = parse_json(text, config.where);
  const fields all(root, config.where);
  config.present = true;
  config.kind = all.text("tokenizer_class").value_or("");
  const bool is_llama = is_llamas(config.kind);
  config.bos = read_end(all, "bos_token", is_llama ? "<s>" : "", "add_bos_token");
  config.eos = read_end(all, "eos_token", is_llama ? "</s>" : "", "add_eos_token");
  config.legacy = all.boolean("legacy");
  config.add_prefix_space = all.boolean("add_prefix_space");
  config.added = read_added(all);
  config.special = read_special(all);
  config.further = read_further(root, config.where);
  return config;
}

std::optional<bool> prefix_space_of(const tokenizer_config& config) {
  // The class makes the step anew, other classes leave it.
  if (config.kind == "GPT2Tokenizer" || config.kind == "GPT2TokenizerFast")
    return config.add_prefix_space.value_or(false);
  return std::nullopt;
}

void leave_ends_to_file(tokenizer_config& config) {
  if (!config.kind.empty() && !is_llamas(config.kind)) config.bos.add = config.eos.add = std::nullopt;
}

void apply_config(const tokenizer_config& config, tokenizer_parts& parts) {
  const text_end bos{parts.bos, parts.before, true, "bos_token", "add_bos_token"};
  const text_end eos{parts.eos, parts.after, false, "eos_token", "add_eos_token"};
  settle(config.bos, bos, {"<s>", "<|begin_of_text|>", "<|endoftext|>"}, config, parts.tokens);
  settle(config.eos, eos, {"</s>", "<|end_of_text|>", "<|endoftext|>"}, config, parts.tokens);
  parts.tokens.mark_special(parts.bos);
  parts.tokens.mark_special(parts.eos);
}

}  // namespace troupe::detail
