// Finds calls of tools in what a model writes, for families of models whose format is known.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/chats/end_search.hpp"

namespace troupe {

enum class tool_style {
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
constexpr bool has_sections(tool_style style) {
  return style == tool_style::sectioned || style == tool_style::fenced;
}
/// Whether marks are around a list of calls, each of which names its function.
constexpr bool has_lists(tool_style style) {
  return style == tool_style::pythonic || style == tool_style::actions;
}
/// Whether special tokens mark calls: then texts must have those tokens, and no form can have the marks.
constexpr bool has_marks(tool_style style) {
  return style == tool_style::channels || style == tool_style::named || style == tool_style::unquoted ||
         has_lists(style) || has_sections(style);
}
/// Whether a call begins with the function's name, so that a form of its arguments is all that is left.
constexpr bool has_address(tool_style style) {
  return style == tool_style::headed || (has_marks(style) && !has_lists(style));
}
/// Whether calls are JSON that names the function, which forms can have.
constexpr bool has_forms(tool_style style) {
  return style != tool_style::none && style != tool_style::headed && !has_marks(style);
}
struct call_tags {
  std::string_view opening, closing;
};
/// Around a call, or several; none of a style without any.
call_tags tags_of(tool_style style);
/// Of the styles tagged and nested.
inline constexpr call_tags hermes_tags{"<tool_call>", "</tool_call>"};
/// Of the style unquoted.
inline constexpr call_tags gemma_tags{"<|tool_call>", "<tool_call|>"};
/// Of the style pythonic.
inline constexpr call_tags lfm_tags{"<|tool_call_start|>", "<|tool_call_end|>"};
/// Of the style actions.
inline constexpr call_tags cohere_tags{"<|START_ACTION|>", "<|END_ACTION|>"};
/// Of a section of calls, and of each call in it.
inline constexpr call_tags section_tags{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
    section_call_tags{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"};
/// Of the style seeded, and of invoked.
inline constexpr call_tags seed_call_tags{"<seed:tool_call>", "</seed:tool_call>"},
    minimax_tags{"<minimax:tool_call>", "</minimax:tool_call>"};
/// Whether the tags around calls are those of one family, which may be special tokens of it.
constexpr bool has_own_tags(tool_style style) {
  return style == tool_style::seeded || style == tool_style::invoked;
}
constexpr bool has_tags(tool_style style) {
  return style == tool_style::tagged || style == tool_style::nested || has_own_tags(style) || has_marks(style);
}
/// A call up to its arguments, of a style with an address.
std::string begun_call(tool_style style, std::string_view name);
/// How models with this chat template write calls.
tool_style tool_style_of(std::string_view chat_template);

/// A function that the model may call.
struct tool_offer {
  std::string name;
  std::vector<std::string> texts = {};  ///< those of its arguments that are texts, whatever they look like
};
/// Those of a request, which may be large: the readers of all its answers share them.
using shared_offers = std::shared_ptr<const std::vector<tool_offer>>;

struct tool_call {
  std::string name;
  std::string arguments;   ///< the text of a JSON object
  bool is_cut = false;     ///< the answer was cut inside the arguments
  std::size_t behind = 0;  ///< so many bytes of the text that was returned with it
};

/// Reads an answer piece by piece. What only looks like a call comes out as text.
class tool_call_reader {
 public:
  /// Only calls of functions in `offers` count. Those after the first `most` are dropped. `is_call`: the whole answer
  /// is a call.
  tool_call_reader(tool_style style, shared_offers offers, std::size_t most = SIZE_MAX, bool is_call = false);

  /// Returns the text that is certainly not part of a call.
  std::string push(std::string_view piece);
  /// Ends the answer. `is_cut`: it would have gone on; an unfinished call counts if its name is complete.
  std::string finish(bool is_cut);
  /// The calls that were completed by the last push() or finish(), and those before it that nobody took.
  std::vector<tool_call> take_calls();
  bool has_calls() const { return found_ > 0; }

 private:
  void read_tagged();
  std::size_t end_of_call();
  void take_text(std::string_view text);
  void read_sequence();
  bool take_sequence(std::string_view text, bool is_cut);
  bool may_be_headed() const;
  bool take_headed(std::string_view text, bool is_cut);
  bool take_pythonic(std::string_view text, bool is_cut);
  bool take_tagged(std::string_view text, bool is_cut);
  bool take_section(std::string_view text, bool is_cut);
  bool take_invocations(std::string_view text, bool is_cut);
  std::optional<tool_call> read_section_call(std::string_view& text, bool is_cut) const;
  void add_call(tool_call call);
  bool add_all(std::vector<tool_call> calls);

  tool_style style_;
  shared_offers offers_;  ///< null where there is no style
  std::string held_;
  end_search end_;           ///< of the call that has begun
  std::string certain_;      ///< text that is about to be returned
  std::string behind_call_;  ///< white space behind a call: part of the text if more text follows
  bool is_behind_call_ = false, inside_ = false, is_text_ = false, is_call_ = false;
  std::vector<tool_call> calls_;
  std::size_t most_, found_ = 0;
};

}  // namespace troupe
