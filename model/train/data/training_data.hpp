#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/model_config.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

class chat_format;

/// Tokens to learn from. `learned[i]` says that predicting token i counts; that of the first token is never read.
struct training_example {
  std::vector<token_id> tokens;
  std::vector<std::uint8_t> learned;

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()) - 1; }  ///< predictions made
};

/// What of the data is not learned, or not as it was meant, and how much of it are chats.
struct data_losses {
  std::int64_t shortened = 0;  ///< examples that were longer than a row: cut to it, or left out
  std::int64_t unwritten = 0;  ///< chats with messages that the model's template does not write
  std::int64_t unended = 0;    ///< chats with answers to be learned, none of which the template ends
  std::int64_t chats = 0;      ///< lines with messages

  data_losses& operator+=(const data_losses& more);
};

/// What chats without ends mean for the learner, an adapter or the model; empty: there are none. Only of what is
/// learned: chats to measure with teach nothing.
std::string unended_text(const data_losses& losses, std::string_view learner);

struct training_data {
  std::vector<training_example> examples;
  data_losses losses = {};
  std::uint64_t fingerprint = 0;
  std::vector<std::size_t> sources = {};  ///< of each example its line or document; empty: each has one of its own
};

/// Training data without its examples.
struct training_summary {
  std::int64_t examples = 0;
  std::int64_t learned_tokens = 0;
  data_losses losses = {};
  std::uint64_t fingerprint = 0;
};

/// What turns lines into tokens.
struct data_format {
  std::shared_ptr<const tokenizer> tokens;
  std::shared_ptr<const chat_format> chat;  ///< or nullptr: then chat lines are refused
  std::vector<token_id> end_tokens;         ///< end answers (end_tokens_of); the first ends a completion or a text
  std::int64_t vocab_size = 0;
  std::int64_t row_length = 512;
  std::int64_t context = 512;  ///< of the model: rows cannot be longer
};
/// Of a model folder or a .gguf file. Its template takes every day for the same one.
data_format data_format_of(const std::filesystem::path& model, const model_config& config, std::int64_t row_length);

/// Names the first line that is none: a packed file, or one in another encoding.
void check_utf8(const std::filesystem::path& file, std::string_view text);

/// Refuses a table, by its name: its rows would be learned as prose.
void check_is_no_table(const std::filesystem::path& file);

/// The number of the first line that is an example, among the first few that are not empty; 0 where none is.
std::size_t line_with_example(std::string_view text);

/// Reads a file whole, or refuses it. Files that end in .jsonl, or begin with '{', have an object in each line:
///   {"messages": [{"role", "content", "weight"}…], "tools"}   the assistant's turns are learned, unless weight is 0
///   {"prompt", "completion"}                                  the completion is learned
///   {"text"}                                                  all of it is learned
/// Each is cut to a row, and left out where what is to be learned lies beyond it; a file with nothing else is refused.
/// Any other file is plain text, documents separated by <|endoftext|>, split into rows; it is refused where one of its
/// first lines is an example, as behind a comment. Bad lines are refused by number.
training_data read_training_data(const std::filesystem::path& file, const data_format& format);
/// Reads a file as read_training_data does, and refuses what that refuses, but holds one example at a time in memory.
training_summary summarize_training_data(const std::filesystem::path& file, const data_format& format);

}  // namespace troupe
