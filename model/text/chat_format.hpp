#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/text/chat_sources.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

class chat_template;

/// What a chat template is given, as JSON texts.
struct chat_input {
  std::string messages;        ///< a list of {role, content}; an assistant's content may be null beside tool_calls
  std::string tools = {};      ///< a list of tools that may be called; empty: none
  std::string variables = {};  ///< an object of further ones that the template may know; empty: none
  bool add_generation_prompt = true;
  bool continues_message = false;  ///< the text ends with that of the last message, which the answer goes on with
};

/// A chat whose messages were prepared (chat_messages.hpp).
struct prepared_chat {
  const nlohmann::ordered_json& messages;
  const nlohmann::ordered_json& tools;  ///< null: none
  bool add_generation_prompt = true;
  const nlohmann::ordered_json* further = nullptr;  ///< variables beside those that every template has
};

/// How a model writes chats, for answers and in training alike: its own template, parsed once. Immutable; any number of
/// threads may use it.
class chat_format {
 public:
  /// Throws input_error where the model has no template, or none that can be read.
  chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens);
  /// `shown` is what errors of the template call the model.
  chat_format(const std::filesystem::path& model, std::shared_ptr<const tokenizer> tokens, const std::string& shown);
  /// `where` is what errors call the template. `now`: what it takes for the time (render_options).
  chat_format(chat_sources sources, const std::string& where, std::shared_ptr<const tokenizer> tokens,
              std::optional<std::chrono::system_clock::time_point> now = {});
  ~chat_format();

  /// The text ends where the assistant's answer begins or goes on, unless `chat` says otherwise. Throws input_error,
  /// also for a role that is neither a usual one nor named by the template.
  std::string render(const chat_input& chat) const;
  /// One user message, and a system message if `system` is not empty.
  std::string render(std::string_view system, std::string_view message) const;
  /// Some templates go through the arguments of calls one by one, and fail where a call was cut: then its arguments are
  /// left out, so that the conversation goes on. Others, as Mistral's, refuse what a user says behind a call's result:
  /// then it is put there. Some add arguments to a text, which they then are. Some cannot do without a tool's
  /// description or parameters, which then say nothing. No more is changed than has to be.
  std::string render_as_can_be(const prepared_chat& chat) const;

  /// The template that requests with tools are written by.
  const std::string& tool_source() const { return sources_.for_tools(); }

 private:
  std::string render_prepared(const prepared_chat& chat) const;
  bool can_render(const prepared_chat& chat) const;
  std::string with_bos(std::string text) const;

  chat_sources sources_;
  std::shared_ptr<const tokenizer> tokens_;
  std::optional<std::chrono::system_clock::time_point> now_;
  std::unique_ptr<const chat_template> usual_, with_tools_;  ///< with_tools_: none where it is the usual one
};

}  // namespace troupe
