// Calls of tools in what a model writes, for the families whose format is known.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class tool_style {
  none,    ///< the template knows no tools, or in a way that is not known here
  tagged,  ///< Hermes, Qwen: <tool_call>{"name": …, "arguments": {…}}</tool_call>
  bare     ///< Llama 3: the answer is {"name": …, "parameters": {…}}
};
/// What a chat template makes its model write.
tool_style tool_style_of(std::string_view chat_template);

struct tool_call {
  std::string name;
  std::string arguments;  ///< a JSON object, as text
  bool is_cut = false;    ///< the arguments end where the answer was cut
};

/// Reads an answer piece by piece. What only looked like a call comes out as text.
class tool_call_reader {
 public:
  /// Only calls of `names` are calls. Those after `most` are dropped. `is_call`: the answer is a call and nothing else.
  tool_call_reader(tool_style style, std::vector<std::string> names, std::size_t most = SIZE_MAX, bool is_call = false);

  /// The text that is certain to be none of a call.
  std::string push(std::string_view piece);
  /// `is_cut`: the answer would have gone on. A call whose name is known by then is one.
  std::string finish(bool is_cut);
  /// Those that were completed since they were last taken.
  std::vector<tool_call> take_calls();
  bool has_calls() const { return found_ > 0; }

 private:
  std::string read_tagged();
  std::string read_bare();
  bool read_call(std::string_view text);
  bool read_cut_call(std::string_view text);
  bool is_offered(const std::string& name) const;
  void add_call(tool_call call);

  tool_style style_;
  std::vector<std::string> names_;
  std::string held_;
  bool inside_ = false, is_text_ = false, is_call_ = false;
  std::vector<tool_call> calls_;
  std::size_t most_, found_ = 0;
};

}  // namespace troupe
