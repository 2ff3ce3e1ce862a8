#include "actors/http/chats/tool_style.hpp"

#include <fmt/format.h>

#include "model/text/channels.hpp"

namespace troupe {
namespace {

constexpr call_tags hermes_tags{"<tool_call>", "</tool_call>"}, gemma_tags{"<|tool_call>", "<tool_call|>"},
    lfm_tags{"<|tool_call_start|>", "<|tool_call_end|>"}, cohere_tags{"<|START_ACTION|>", "<|END_ACTION|>"},
    seed_call_tags{"<seed:tool_call>", "</seed:tool_call>"},
    minimax_tags{"<minimax:tool_call>", "</minimax:tool_call>"};
constexpr call_tags section_tags{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
    section_call_tags{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"};

constexpr std::string_view gemma_address = "call:";
constexpr std::string_view mistral_mark = "[TOOL_CALLS]", mistral_body = "[ARGS]";
/// What LFM2's templates, which may show no calls, have before the tools, and those of LFM2.5.
constexpr std::string_view lfm_tools = "<|tool_list_start|>", later_lfm_tools = "List of tools: ";
constexpr std::string_view glm_request = "Json 格式表示调用的参数";

constexpr sequence_form bare_sequence{{"<|python_tag|>", "<|python_tag|>"}, "", ";", "", ""};
constexpr sequence_form list_sequence{{mistral_mark, "<|tool_call|>"}, "[", ",", "]", "<|/tool_call|>"};
constexpr sequence_form action_sequence{{"", ""}, "[", ",", "]", ""};

constexpr call_notation notations[]{
    {.style = tool_style::none},
    {.style = tool_style::tagged, .reads = call_text::json, .tags = hermes_tags, .has_forms = true},
    {.style = tool_style::nested, .reads = call_text::tags, .tags = hermes_tags, .has_forms = true},
    {.style = tool_style::seeded,
     .reads = call_text::tags,
     .tags = seed_call_tags,
     .may_be_special = true,
     .has_forms = true},
    {.style = tool_style::invoked,
     .reads = call_text::invocations,
     .tags = minimax_tags,
     .may_be_special = true,
     .has_forms = true},
    {.style = tool_style::channels,
     .reads = call_text::addressed,
     .tags = {call_begin, call_end},
     .may_be_special = true,
     .address = {{"", call_body}}},
    {.style = tool_style::named,
     .reads = call_text::addressed,
     .tags = {mistral_mark, ""},
     .may_be_special = true,
     .address = {{"", mistral_body}}},
    {.style = tool_style::unquoted,
     .reads = call_text::unquoted,
     .tags = gemma_tags,
     .may_be_special = true,
     .address = {{gemma_address, ""}}},
    {.style = tool_style::sectioned,
     .reads = call_text::section,
     .tags = section_tags,
     .inner = section_call_tags,
     .may_be_special = true,
     .address = {{"", "<｜tool▁sep｜>"}}},
    {.style = tool_style::fenced,
     .reads = call_text::fenced,
     .tags = section_tags,
     .inner = section_call_tags,
     .may_be_special = true,
     .address = {{"function<｜tool▁sep｜>", "\n```json\n"}}},
    {.style = tool_style::pythonic,
     .reads = call_text::pythonic,
     .tags = lfm_tags,
     .may_be_special = true,
     .sequence = list_sequence},
    {.style = tool_style::actions,
     .reads = call_text::sequence,
     .tags = cohere_tags,
     .may_be_special = true,
     .name_key = "tool_name",
     .sequence = action_sequence},
    {.style = tool_style::headed, .reads = call_text::headed, .address = {{"", "\n"}}},
    {.style = tool_style::bare,
     .reads = call_text::sequence,
     .has_forms = true,
     .arguments_key = "parameters",
     .sequence = bare_sequence},
    {.style = tool_style::listed, .reads = call_text::sequence, .has_forms = true, .sequence = list_sequence}};

constexpr bool are_in_order() {
  std::size_t at = 0;
  for (const call_notation& each : notations)
    if (each.style != static_cast<tool_style>(at++)) return false;
  return at == static_cast<std::size_t>(tool_style::listed) + 1;
}
static_assert(are_in_order(), "each style has its notation at its place");

}  // namespace

const call_notation& notation_of(tool_style style) {
  return notations[static_cast<std::size_t>(style)];
}

tool_style tool_style_of(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; };
  // published ones of this family show calls and their results, but no tools
  if (has(section_tags.opening)) return has("```json") ? tool_style::fenced : tool_style::sectioned;
  if (!has("tools")) return tool_style::none;
  if (has_channels(chat_template)) return tool_style::channels;
  if (has(gemma_tags.opening) && has(gemma_address)) return tool_style::unquoted;
  if (has(seed_call_tags.opening)) return tool_style::seeded;
  if (has(minimax_tags.opening)) return tool_style::invoked;
  if (has(hermes_tags.opening)) return has("<function=") || has("<arg_key>") ? tool_style::nested : tool_style::tagged;
  if (has(mistral_mark) && has(mistral_body)) return tool_style::named;
  if (has(mistral_mark) || has("<|tool_call|>") || has("<|tool|>")) return tool_style::listed;
  if (has(lfm_tags.opening) || has(lfm_tools)) return tool_style::pythonic;
  if (has(cohere_tags.opening)) return tool_style::actions;
  if (has(glm_request)) return tool_style::headed;
  if (has("\"parameters\"") || has("python_tag")) return tool_style::bare;
  return has("<|im_start|>") && has(later_lfm_tools) ? tool_style::pythonic : tool_style::none;
}

std::string begun_call(tool_style style, std::string_view name) {
  const call_notation& by = notation_of(style);
  return fmt::format("{}{}{}{}{}", by.tags.opening, by.inner.opening, by.address->before, name, by.address->behind);
}

}  // namespace troupe
