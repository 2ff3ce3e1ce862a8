// Finds calls of tools in what a model writes, for families of models whose format is known.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/chats/end_search.hpp"
#include "actors/http/chats/tool_style.hpp"

namespace troupe {

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
  std::size_t end_of_arguments();
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
  bool add_any(std::optional<tool_call> call);
  bool add_all(std::vector<tool_call> calls);

  const call_notation& by_;
  shared_offers offers_;  ///< null where no calls are known
  std::string held_;
  end_search end_;           ///< of the call that has begun
  std::string certain_;      ///< text that is about to be returned
  std::string behind_call_;  ///< white space behind a call: part of the text if more text follows
  bool is_behind_call_ = false, inside_ = false, is_text_ = false, is_call_ = false;
  std::vector<tool_call> calls_;
  std::size_t most_, found_ = 0;
};

}  // namespace troupe
