// gpt-oss writes an answer as messages, each with a channel: <|channel|>analysis<|message|>…<|end|><|start|>assistant…
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Whether models with this chat template write so.
bool has_channels(std::string_view chat_template);

struct said_text {
  std::string thought, answer;
};

/// Where an answer of a demanded form begins: behind this.
inline constexpr std::string_view final_channel = "<|channel|>final<|message|>";
/// How a call of a function reads once it was taken out of its message: the function's name follows, then call_body,
/// the arguments and call_end. A prompt that ends so has the model write the arguments.
inline constexpr std::string_view call_begin = "<|channel|>commentary to=functions.";
inline constexpr std::string_view call_body = " <|constrain|>json<|message|>", call_end = "<|call|>";

/// Reads an answer piece by piece. Messages of the channel analysis are thoughts; those to a function are calls, which
/// stay in the answer; others are its text.
class channel_reader {
 public:
  /// How the prompt ends, before anything is read.
  void follow(std::string_view prompt_end);
  said_text push(std::string_view piece);
  said_text finish();

 private:
  enum class place : std::uint8_t { before, header, body };
  enum class content : std::uint8_t { thought, text, call };

  bool read_beginning();
  bool read_header(said_text& to);
  bool read_body(said_text& to);
  void begin_body(std::string_view header, said_text& to);
  void add(std::string_view text, said_text& to);

  place place_ = place::before;
  content is_ = content::text;
  bool has_thought_ = false, has_text_ = false;  ///< an earlier message has
  bool has_begun_ = false;                       ///< the message has said something
  std::string held_;
};

/// A whole answer without its thoughts.
std::string without_thoughts(std::string_view said);

}  // namespace troupe
