// How families of models write calls of tools: one row of a table says all that is known of a style.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

enum class tool_style : std::uint8_t {
  none,      ///< the template has no tools, or in a form that is not known here
  tagged,    ///< Hermes, Qwen: <tool_call>{"name": …, "arguments": {…}}</tool_call>
  nested,    ///< Qwen3-Coder, GLM: <tool_call> and tags of their own for the arguments
  seeded,    ///< Seed-OSS: as Qwen3-Coder, with <seed:tool_call>
  invoked,   ///< MiniMax-M2: <minimax:tool_call> around tags for each call
  channels,  ///< gpt-oss: a message to=functions.NAME, whose text is the arguments
  named,     ///< Mistral from v11 on: [TOOL_CALLS]NAME[ARGS]{…}
  unquoted,  ///< Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>}<tool_call|>
  sectioned,  ///< DeepSeek V3.1: a section of calls, each of which is NAME<｜tool▁sep｜>{…} between marks of its own
  fenced,     ///< DeepSeek V3 and R1: likewise, of function<｜tool▁sep｜>NAME and a block of Markdown with {…}
  pythonic,  ///< LFM2: <|tool_call_start|>[NAME(key="text", key=1)]<|tool_call_end|>
  actions,   ///< Cohere: <|START_ACTION|>[{"tool_name": …, "parameters": {…}}, …]<|END_ACTION|>
  headed,    ///< GLM-4: the answer is NAME, and {…} on the next line
  bare,      ///< Llama 3: the answer is {"name": …, "parameters": {…}}, several with ; between them
  listed     ///< Mistral v3 and v7, Granite 3, Phi-4-mini: the answer is [{"name": …, "arguments": {…}}, …]
};

struct call_tags {
  std::string_view opening, closing;
};
/// What stands before a function's name, and between it and the arguments.
struct call_address {
  std::string_view before, behind;
};
/// How objects of JSON look that stand one behind the other.
struct sequence_form {
  std::array<std::string_view, 2>
      tags;  ///< one of them may stand before it: mostly it is a special token, and left out
  std::string_view first, between, last;
  std::string_view mark;  ///< may stand behind it
};

/// What there is between the tags; of a style without tags, what the whole answer is.
enum class call_text : std::uint8_t {
  none,         ///< nothing that is known
  json,         ///< an object that names the function
  tags,         ///< tags around the arguments, or that object
  invocations,  ///< tags around each of several calls, or those above
  addressed,    ///< an address and an object
  unquoted,     ///< an address and an object in Gemma 4's notation
  section,      ///< several addresses with objects, each between tags of its own
  fenced,       ///< a section whose objects are in blocks of Markdown
  headed,       ///< addresses and objects, one behind the other
  pythonic,     ///< a list of calls as Python has them, or a sequence
  sequence      ///< objects that name the function
};

struct call_notation {
  tool_style style;
  call_text reads = call_text::none;
  call_tags tags = {};   ///< around a call, or several
  call_tags inner = {};  ///< around each call of a section
  /// The tags may be special tokens: then the texts of answers must have those.
  bool may_be_special = false;
  /// Calls are JSON that names the function, and their tags are text, so that forms can have both.
  bool has_forms = false;
  /// Where a call begins with the function's name, so that a form of its arguments is all that is left.
  std::optional<call_address> address = std::nullopt;
  const char *name_key = "name", *arguments_key = "arguments";  ///< in a call that names the function
  sequence_form sequence = {};

  constexpr bool has_tags() const { return !tags.opening.empty(); }
};
const call_notation& notation_of(tool_style style);

/// How models with this chat template write calls.
tool_style tool_style_of(std::string_view chat_template);

/// A call up to its arguments, of a style with an address.
std::string begun_call(tool_style style, std::string_view name);

}  // namespace troupe
