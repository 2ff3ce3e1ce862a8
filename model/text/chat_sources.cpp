#include "model/text/chat_sources.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_files.hpp"
#include "model/tokenizer/tokenizer_config.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::size_t largest_text = std::size_t{64} << 20;
constexpr std::string_view gguf_template_key = "tokenizer.chat_template";
constexpr std::string_view gguf_tool_template_key = "tokenizer.chat_template.tool_use";

json tokenizer_config(const fs::path& folder, const std::string& where) {
  const std::string text = detail::tokenizer_config_text(folder);
  json config = text.empty() ? json::object() : detail::parse_json_as<json>(text, where);
  return config.is_object() ? config : json::object();
}

/// A list of templates with names: "default", and perhaps "tool_use".
void take_named(const json& list, const std::string& where, chat_sources& sources) {
  for (const json& each : list) {
    if (!each.is_object() || !each.contains("name") || !each.contains("template") || !each["template"].is_string())
      refuse("{}: an entry of \"chat_template\" has no name or no template: mend the file", where);
    const auto source = each["template"].get<std::string>();
    if (each["name"] == "default" || list.size() == 1) sources.usual = source;
    if (each["name"] == "tool_use") sources.with_tools = source;
  }
  if (!list.empty() && sources.usual.empty())
    refuse("{}: none of the chat templates is called \"default\": call the one to use so", where);
}

void take_template(const json& config, const std::string& where, chat_sources& sources) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return;
  if (found->is_array()) return take_named(*found, where, sources);
  if (!found->is_string()) refuse("{}: \"chat_template\" should be a text or a list: mend the file", where);
  sources.usual = found->get<std::string>();
}

/// "pad_token": "<pad>", or {"content": "<pad>"}.
void take_texts(const json& config, chat_sources& sources) {
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) sources.texts[key] = value.get<std::string>();
    if (value.is_object() && value.contains("content") && value["content"].is_string())
      sources.texts[key] = value["content"].get<std::string>();
  }
}

chat_sources sources_in_folder(const fs::path& folder) {
  chat_sources found;
  const std::string file = (folder / "tokenizer_config.json").string();
  const json config = tokenizer_config(folder, file);
  take_texts(config, found);
  if (const fs::path own = folder / usual_template_file; path_exists(own))
    found.usual = detail::read_text(own, largest_text);
  else
    take_template(config, file, found);
  if (const fs::path old = folder / old_template_file; found.usual.empty() && path_exists(old))
    take_template(detail::parse_json_as<json>(detail::read_text(old, largest_text), old.string()), old.string(), found);
  if (const fs::path own = folder / tool_template_file; path_exists(own))
    found.with_tools = detail::read_text(own, largest_text);
  return found;
}

chat_sources source_beside(const fs::path& gguf) {
  const fs::path own = template_beside(gguf);
  return {.usual = path_exists(own) ? detail::read_text(own, largest_text) : ""};
}

}  // namespace

std::optional<chat_sources> find_chat_sources(const fs::path& model) {
  chat_sources found = is_folder(model) ? sources_in_folder(model) : source_beside(model);
  if (const auto metadata = find_gguf_metadata(model)) {
    found.leaves_bos = true;
    if (found.usual.empty()) {
      found.usual = metadata->get<std::string>(gguf_template_key).value_or("");
      found.with_tools = metadata->get<std::string>(gguf_tool_template_key).value_or("");
    }
  }
  if (found.usual.empty()) return std::nullopt;
  return found;
}

}  // namespace troupe
