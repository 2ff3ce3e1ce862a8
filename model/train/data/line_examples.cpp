#include "model/train/data/line_examples.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/train/data/chat_examples.hpp"
#include "model/train/data/example_parts.hpp"

namespace troupe::detail {
namespace {

using nlohmann::ordered_json;

std::string text_field(const ordered_json& line, const char* name) {
  const auto found = line.find(name);
  if (found != line.end() && found->is_array()) refuse("\"{}\" should be a text: write a chat as \"messages\"", name);
  if (found == line.end()) refuse("has no \"{}\"", name);
  if (!found->is_string()) refuse("\"{}\" should be a text", name);
  return found->get<std::string>();
}

/// Where the completion begins is where the tokens of the whole part from those of the prompt alone.
training_example completion_example(const ordered_json& line, const data_format& format) {
  const std::string prompt = text_field(line, "prompt"), completion = text_field(line, "completion");
  if (completion.empty()) refuse("\"completion\" is empty");
  auto tokens = format.tokens->encode(prompt + completion);
  const std::size_t first = shared_beginning(format.tokens->encode(prompt), tokens);
  end_text(tokens, format);
  return with_learned(std::move(tokens), first);
}

training_example text_example(const ordered_json& line, const data_format& format) {
  auto tokens = format.tokens->encode(text_field(line, "text"));
  end_text(tokens, format);
  return with_learned(std::move(tokens), 0);
}

bool is_preference(const ordered_json& line) {
  const auto says = [&](const char* key) { return line.contains(key) && !line[key].is_null(); };
  if (says("completion") && says("label") && line["label"].is_boolean()) return true;
  return says("chosen") || says("rejected") || says("preferred_output") || says("non_preferred_output");
}

/// ", but "instruction", "output"": what other programs call it shows what is meant.
std::string but_keys_of(const ordered_json& line) {
  constexpr std::size_t enough = 200, longest_key = 40;
  std::string keys;
  for (const auto& [key, value] : line.items()) {
    if (keys.size() > enough) break;
    keys += fmt::format("{}\"{}\"", keys.empty() ? ", but " : ", ", key.substr(0, longest_key));
  }
  return keys;
}

}  // namespace

bool is_example(std::string_view text) try {
  if (!text.substr(first_not_blank(text)).starts_with('{')) return false;
  const auto line = parse_json_as<ordered_json>(text, "the line");
  return line.contains("messages") || (line.contains("prompt") && line.contains("completion")) || line.contains("text");
} catch (const input_error&) {
  return false;
}

line_examples examples_of_line(std::string_view text, const data_format& format) {
  const auto line = parse_json_as<ordered_json>(text, "the line");
  if (!line.is_object()) refuse("the line is no JSON object: write one example a line");
  if (is_preference(line))  // what it calls bad would be learned as if it were good
    refuse("is preference data: only answers to be learned are taken, as \"completion\" or in \"messages\"");
  line_examples made;
  if (line.contains("messages"))
    made = chat_examples(line, format);
  else if (line.contains("prompt") || line.contains("completion"))
    add_to(made, completion_example(line, format), format);
  else if (line.contains("text"))
    add_to(made, text_example(line, format), format);
  else
    refuse("has neither \"messages\" nor \"prompt\" and \"completion\" nor \"text\"{}", but_keys_of(line));
  if (made.examples.empty() && made.losses.shortened == 0) refuse("has nothing to learn: leave the line out");
  return made;
}

}  // namespace troupe::detail
