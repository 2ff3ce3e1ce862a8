#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/json_parts.hpp"
#include "model/tokenizer/patterns.hpp"

namespace troupe::detail {
namespace {

using json = nlohmann::json;
using fields = json_fields<json>;

std::string type_of(const fields& part) {
  auto type = part.text("type");
  if (!type) refuse("{}: has no \"type\"", part.where());
  return std::move(*type);
}

/// {"String": "..."} or {"Regex": "..."}.
struct pattern_text {
  std::string text;
  bool literal = false;
};

pattern_text read_pattern(const fields& part) {
  const auto* value = part.find("pattern");
  if (!value) refuse("{}: has no \"pattern\"", part.where());
  const fields pattern(*value, part.where() + ".pattern");
  if (auto text = pattern.text("String")) return {std::move(*text), true};
  if (auto text = pattern.text("Regex")) return {std::move(*text), false};
  refuse("{}: should have \"String\" or \"Regex\"", pattern.where());
}

regex compile(const pattern_text& pattern, const std::string& where) {
  if (pattern.literal && pattern.text.empty()) refuse("{}: the pattern is empty", where);
  return pattern.literal ? regex(escape_pattern(pattern.text), where) : regex_of(pattern.text, where);
}

constexpr std::size_t most_steps = 64;
constexpr std::size_t longest_content = 64;

std::string required_text(const fields& part, std::string_view key) {
  auto text = part.text(key);
  if (!text) refuse("{}: has no \"{}\"", part.where(), key);
  if (text->size() > longest_content) refuse("{}: \"{}\" has more than {} bytes", part.where(), key, longest_content);
  return std::move(*text);
}

void check_steps(std::size_t steps, const std::string& where) {
  if (steps >= most_steps) refuse("{}: there are more than {} steps", where, most_steps);
}

void add_replace(const fields& part, normalizer& out) {
  const auto pattern = read_pattern(part);
  auto content = required_text(part, "content");
  if (!pattern.literal) return out.add(replace_pattern_step{compile(pattern, part.where()), std::move(content)});
  if (pattern.text.empty()) refuse("{}: the pattern is empty", part.where());
  out.add(replace_text_step{pattern.text, std::move(content)});
}

void add_normalizer(const json& value, const std::string& where, normalizer& out) {
  const fields part(value, where);
  const auto type = type_of(part);
  if (type == "Sequence")
    return part.for_each_in("normalizers",
                            [&](const json& each, const std::string& place) { add_normalizer(each, place, out); });
  check_steps(out.steps(), where);
  if (type == "NFC") return out.add(nfc_step{});
  if (type == "Prepend") return out.add(prepend_step{required_text(part, "prepend")});
  if (type == "Replace") return add_replace(part, out);
  refuse("{}: the normalizer \"{}\" is not supported (NFC, Prepend, Replace and Sequence are)", where, type);
}

split_behavior read_behavior(const fields& part) {
  const auto name = required_text(part, "behavior");
  if (name == "Isolated") return split_behavior::isolated;
  if (name == "Removed") return split_behavior::removed;
  if (name == "MergedWithPrevious") return split_behavior::merged_with_previous;
  if (name == "MergedWithNext") return split_behavior::merged_with_next;
  if (name == "Contiguous") return split_behavior::contiguous;
  refuse("{}: the behavior \"{}\" is not known", part.where(), name);
}

metaspace_step read_metaspace(const fields& part) {
  using prepend = metaspace_step::prepend;
  metaspace_step step;
  step.replacement = required_text(part, "replacement");
  if (step.replacement.empty() || next_code_point(step.replacement, 0).length != step.replacement.size())
    refuse("{}: \"replacement\" should be one character", part.where());
  step.split = part.boolean("split").value_or(true);
  const auto scheme = part.text("prepend_scheme").value_or("always");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    refuse("{}: the prepend_scheme \"{}\" is not known", part.where(), scheme);
  const bool never = scheme == "never" || !part.boolean("add_prefix_space").value_or(true);
  step.where = never ? prepend::never : scheme == "first" ? prepend::first : prepend::always;
  return step;
}

void add_split(regex pattern, split_behavior behavior, bool invert, pre_tokenizer& out) {
  out.add(split_step{std::move(pattern), behavior, invert});
}

void add_pattern(std::string_view pattern, split_behavior behavior, const std::string& where, pre_tokenizer& out) {
  add_split(compile({std::string(pattern), false}, where), behavior, false, out);
}

void add_byte_level(const fields& part, pre_tokenizer_part& out) {
  if (part.boolean("add_prefix_space").value_or(true)) out.steps.add(prefix_space_step{});
  if (part.boolean("use_regex").value_or(true))
    add_pattern(gpt2_pattern, split_behavior::isolated, part.where(), out.steps);
  out.byte_level = true;
}

void add_step(const std::string& type, const fields& part, pre_tokenizer& out) {
  if (type == "Split")
    return add_split(compile(read_pattern(part), part.where()), read_behavior(part),
                     part.boolean("invert").value_or(false), out);
  if (type == "Digits") {
    const bool individual = part.boolean("individual_digits").value_or(false);
    return add_pattern(R"(\p{N})", individual ? split_behavior::isolated : split_behavior::contiguous, part.where(),
                       out);
  }
  if (type == "Metaspace") return out.add(read_metaspace(part));
  if (type == "Whitespace")
    return add_split(compile({R"([\w\u200c\u200d]+|[^\s\u200c\u200d\w]+)", false}, part.where()),
                     split_behavior::removed, true, out);
  if (type == "WhitespaceSplit") return add_pattern(R"(\s)", split_behavior::removed, part.where(), out);
  if (type == "Punctuation")
    return add_pattern(R"([\p{P}!-/:-@\[-`{-~])", part.has("behavior") ? read_behavior(part) : split_behavior::isolated,
                       part.where(), out);
  refuse(
      "{}: the pre-tokenizer \"{}\" is not supported (ByteLevel, Split, Digits, Metaspace, Whitespace, "
      "WhitespaceSplit, Punctuation and Sequence are)",
      part.where(), type);
}

void add_pre_tokenizer(const json& value, const std::string& where, pre_tokenizer_part& out) {
  const fields part(value, where);
  const auto type = type_of(part);
  if (type == "Sequence")
    return part.for_each_in("pretokenizers",
                            [&](const json& each, const std::string& place) { add_pre_tokenizer(each, place, out); });
  check_steps(out.steps.steps(), where);
  if (out.byte_level) refuse("{}: a step behind ByteLevel is not supported", where);
  if (type == "ByteLevel") return add_byte_level(part, out);
  add_step(type, part, out.steps);
}

}  // namespace

normalizer read_normalizer(const json* part, const std::string& where) {
  normalizer out;
  if (part) add_normalizer(*part, where, out);
  return out;
}

pre_tokenizer_part read_pre_tokenizer(const json* part, const std::string& where) {
  pre_tokenizer_part out;
  if (part) add_pre_tokenizer(*part, where, out);
  return out;
}

}  // namespace troupe::detail
