#include "model/engine/model_text.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/chat/chat_template.hpp"
#include "model/formats/gguf.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = std::size_t{64} << 20;
constexpr std::string_view gguf_template_key = "tokenizer.chat_template";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The GGUF file that speaks for the model: itself, or the metadata in a folder that was quantized from one.
std::optional<gguf_file> open_metadata(const fs::path& model) {
  if (!is_folder(model)) return open_gguf(model);
  if (const fs::path file = model / "metadata.gguf"; is_there(file)) return open_gguf(file);
  return std::nullopt;
}

bool has_vocabulary(const fs::path& model) {
  const auto metadata = open_metadata(model);
  return metadata && metadata->metadata.contains("tokenizer.ggml.tokens");
}

/// tokenizer_config.json has one template, or a list of templates with names.
std::optional<std::string> template_in(const nlohmann::json& config, const std::string& where) {
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) refuse("{}: \"chat_template\" should be a text or a list: mend the file", where);
  std::optional<std::string> chosen;
  for (const auto& each : *found) {
    if (!each.is_object() || !each.contains("name") || !each.contains("template") || !each["template"].is_string())
      refuse("{}: an entry of \"chat_template\" has no name or no template: mend the file", where);
    if (!chosen || each["name"] == "default") chosen = each["template"].get<std::string>();
  }
  return chosen;
}

std::optional<std::string> template_in_folder(const fs::path& folder) {
  if (const fs::path file = folder / "chat_template.jinja"; is_there(file))
    return detail::read_text(file, largest_file);
  const fs::path file = folder / "tokenizer_config.json";
  if (!is_there(file)) return std::nullopt;
  return template_in(detail::parse_json(detail::read_text(file, largest_file), file.string()), file.string());
}

class absent_tokenizer : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view, encode_options) const override { return {}; }
  std::string_view bytes_of(token_id) const override { return {}; }
  std::string decode(std::span<const token_id>, bool) const override { return {}; }
  bool strips_leading_space() const override { return false; }
  std::int32_t size() const override { return 0; }
  bool is_special(token_id) const override { return false; }
  std::optional<token_id> find(std::string_view) const override { return std::nullopt; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> eos() const override { return std::nullopt; }
};

/// What the reference hands to a template, in its order.
nlohmann::ordered_json template_variables(const tokenizer& tokens, nlohmann::ordered_json messages) {
  nlohmann::ordered_json variables;
  variables["messages"] = std::move(messages);
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = true;
  if (tokens.bos()) variables["bos_token"] = tokens.bytes_of(*tokens.bos());
  if (tokens.eos()) variables["eos_token"] = tokens.bytes_of(*tokens.eos());
  return variables;
}

/// An assistant that called tools may have said nothing else.
bool calls_tools(const nlohmann::ordered_json& message) {
  const auto calls = message.find("tool_calls");
  const auto content = message.find("content");
  return calls != message.end() && calls->is_array() && !calls->empty() &&
         (content == message.end() || content->is_null() || content->is_string());
}

void check_messages(const nlohmann::ordered_json& messages) {
  if (!messages.is_array() || messages.empty()) refuse("messages: a list of {{role, content}} is expected, not empty");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& each = messages[i];
    const bool right = each.is_object() && each.contains("role") && each["role"].is_string() &&
                       (calls_tools(each) || (each.contains("content") && each["content"].is_string()));
    if (!right) refuse("messages[{}]: an object with the texts \"role\" and \"content\" is expected", i);
  }
}

}  // namespace

std::string tokenizer_kind(const fs::path& model) {
  if (is_folder(model))
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
      if (is_there(model / name)) return name;
  return has_vocabulary(model) ? "GGUF" : "";
}

std::shared_ptr<const tokenizer> open_tokenizer(const fs::path& model) {
  if (is_folder(model)) return load_tokenizer(model);
  return tokenizer_from_gguf(open_gguf(model), model.string());
}

std::shared_ptr<const tokenizer> no_tokenizer() {
  return std::make_shared<const absent_tokenizer>();
}

std::optional<std::string> find_chat_template(const fs::path& model) {
  if (is_folder(model))
    if (auto found = template_in_folder(model)) return found;
  const auto metadata = open_metadata(model);
  return metadata ? metadata->get<std::string>(gguf_template_key) : std::nullopt;
}

std::vector<token_id> prompt_of_text(const tokenizer& tokens, std::string_view text, const std::string& model) {
  auto encoded = tokens.encode(text);
  if (encoded.empty() && tokens.bos()) encoded.push_back(*tokens.bos());
  if (encoded.empty()) refuse("{}: has no BOS token to start from: give a prompt that is not empty", model);
  return encoded;
}

std::vector<token_id> prompt_of_chat(const tokenizer& tokens, std::string_view rendered) {
  return tokens.encode(rendered, {.add_special = false, .parse_special = true});
}

chat_format::chat_format(const fs::path& model, std::shared_ptr<const tokenizer> tokens) : tokens_(std::move(tokens)) {
  const auto source = find_chat_template(model);
  if (!source) refuse("{}: has no chat template: give the prompt as plain text", model.string());
  source_ = *source;
  template_ = std::make_unique<const chat_template>(source_, model.string() + ": chat template");
}

chat_format::~chat_format() = default;

std::string chat_format::render(std::string_view messages) const {
  return render(chat_input{std::string(messages), {}, {}, true});
}

std::string chat_format::render(const chat_input& chat) const {
  constexpr detail::json_limits deep{.depth = 64};
  const auto parsed = [&](const std::string& text, const char* what) {
    return detail::parse_json_as<nlohmann::ordered_json>(text, what, deep);
  };
  auto list = parsed(chat.messages, "messages");
  check_messages(list);
  auto variables = template_variables(*tokens_, std::move(list));
  if (!chat.tools.empty()) variables["tools"] = parsed(chat.tools, "tools");
  variables["add_generation_prompt"] = chat.add_generation_prompt;
  if (!chat.variables.empty()) {
    const auto further = parsed(chat.variables, "chat_template_kwargs");
    if (!further.is_object()) refuse("chat_template_kwargs: a JSON object is expected");
    for (const auto& [name, value] : further.items())
      if (name != "messages") variables[name] = value;
  }
  return template_->render(variables);
}

std::string chat_format::render(std::string_view system, std::string_view message) const {
  auto list = nlohmann::ordered_json::array();
  if (!system.empty()) list.push_back({{"role", "system"}, {"content", system}});
  list.push_back({{"role", "user"}, {"content", message}});
  return template_->render(template_variables(*tokens_, std::move(list)));
}

}  // namespace troupe
