#include "model/train/data/training_data.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/fnv_hash.hpp"
#include "base/mapped_file.hpp"
#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/formats/json_input.hpp"
#include "model/text/chat_format.hpp"
#include "model/text/documents.hpp"
#include "model/text/model_text.hpp"
#include "model/text/tags.hpp"
#include "model/train/data/example_parts.hpp"
#include "model/train/data/line_examples.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_named_lines = 8, lines_looked_at = 8;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// What templates that write the date take for the time, at noon: whoever reads data, and whenever, makes the same
/// tokens of it. It is the day that those of Llama 3 write where they know none.
constexpr std::chrono::sys_seconds day_of_data =
    std::chrono::sys_days(std::chrono::July / 26 / 2024) + std::chrono::hours(12);

/// Takes the examples of a file, one after the other, with the line or document that each is of.
using example_sink = std::function<void(training_example&&, std::size_t source)>;

std::int64_t learned_tokens_of(const training_example& example) {
  return std::count(example.learned.begin() + 1, example.learned.end(), 1);
}

void add_to(fnv_hash& print, const training_example& example) {
  print.add(example.tokens.size());
  for (std::size_t i = 0; i < example.tokens.size(); ++i)
    print.add(static_cast<std::uint64_t>(example.tokens[i]) << 1 | example.learned[i]);
}

/// Of an object that is written over several lines.
bool opens_alone(std::string_view shown) {
  return shown.starts_with('{') && is_blank(shown.substr(1, shown.find('\n') - 1));
}

/// Takes the next line off a text, without the break at its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// All of it would be learned as prose.
void check_has_no_examples(const fs::path& file, std::string_view text) {
  if (const std::size_t number = line_with_example(text))
    refuse("{}:1: is no JSON, but line {} is an example: mend what comes before it, or leave it out", file.string(),
           number);
}

bool has_lines(const fs::path& file, std::string_view text) {
  const std::string_view shown = text.substr(first_not_blank(text));
  if (opens_alone(shown)) refuse("{}: has objects of several lines: write one object a line (jq -c .)", file.string());
  if (file.extension() == ".jsonl" || shown.starts_with('{')) return true;
  std::string_view inside = shown;
  const bool list = take(inside, "[") && take(inside, "{");
  if (list || (file.extension() == ".json" && !shown.empty()))
    refuse("{}: is one list of JSON: write one object a line (jq -c '.[]')", file.string());
  check_has_no_examples(file, text);
  return false;
}

/// Refuses the first bad lines in one message, with the place and cause of each.
[[noreturn]] void refuse_lines(const fs::path& file, const std::vector<std::pair<std::size_t, std::string>>& bad) {
  std::string more;
  for (std::size_t i = 1; i < std::min(bad.size(), most_named_lines); ++i)
    more += fmt::format("{}{}", i > 1 ? ", " : "", bad[i].first);
  if (bad.size() > most_named_lines) more += ", …";
  const std::string others =
      more.empty() ? ""
                   : fmt::format(" (and {} more bad {}: {})", bad.size() - 1, bad.size() == 2 ? "line" : "lines", more);
  refuse("{}:{}: {}{}", file.string(), bad.front().first, bad.front().second, others);
}

data_losses read_lines(const fs::path& file, std::string_view text, const data_format& format,
                       const example_sink& take) {
  data_losses losses;
  std::vector<std::pair<std::size_t, std::string>> bad;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (is_blank(line)) continue;
    try {
      detail::line_examples made = detail::examples_of_line(line, format);
      losses += made.losses;
      for (training_example& example : made.examples) {
        check_tokens(example.tokens, format.vocab_size);
        take(std::move(example), number);
      }
    } catch (const input_error& error) {
      bad.emplace_back(number, error.what());
    }
  }
  if (!bad.empty()) refuse_lines(file, bad);
  return losses;
}

/// Pieces overlap by the one token that is a target in one and an input in the next.
void cut(const std::vector<token_id>& document, std::size_t number, const data_format& format,
         const example_sink& take) {
  const auto length = to_size(format.row_length);
  for (std::size_t first = 0; first + 1 < document.size(); first += length) {
    const std::size_t count = std::min(length + 1, document.size() - first);
    training_example example;
    example.tokens.assign(document.begin() + static_cast<std::ptrdiff_t>(first),
                          document.begin() + static_cast<std::ptrdiff_t>(first + count));
    example.learned.assign(count, 1);
    check_tokens(example.tokens, format.vocab_size);
    take(std::move(example), number);
  }
}

void read_text_file(std::string_view text, const data_format& format, const example_sink& take) {
  std::size_t number = 0;
  for (const text_document& document : documents_of(text)) {
    auto tokens = tokens_of_document(*format.tokens, document.text);
    if (tokens.empty()) continue;
    if (document.ends) detail::end_text(tokens, format);
    cut(tokens, ++number, format, take);
  }
}

[[noreturn]] void refuse_empty(const fs::path& file, const data_losses& losses, const data_format& format) {
  if (losses.shortened == 0) refuse("{}: has nothing to learn: give examples or a longer text", file.string());
  refuse("{}: what is to be learned begins beyond {} tokens in all examples: {}", file.string(), format.row_length,
         format.row_length < format.context ? "use longer rows (length)" : "give shorter ones");
}

data_losses read_examples(const fs::path& file, const data_format& format, const example_sink& take) {
  check_is_no_table(file);
  const mapped_file mapped(file);
  std::string_view text = mapped.text();
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  check_utf8(file, text);
  data_losses losses;
  bool is_empty = true;
  const auto take_one = [&](training_example&& example, std::size_t source) {
    is_empty = false;
    take(std::move(example), source);
  };
  if (has_lines(file, text))
    losses = read_lines(file, text, format, take_one);
  else
    read_text_file(text, format, take_one);
  if (is_empty) refuse_empty(file, losses, format);
  return losses;
}

}  // namespace

data_losses& data_losses::operator+=(const data_losses& more) {
  shortened += more.shortened;
  unwritten += more.unwritten;
  unended += more.unended;
  chats += more.chats;
  return *this;
}

std::string unended_text(const data_losses& losses, std::string_view learner) {
  if (losses.unended == 0) return {};
  return fmt::format(
      "{} chats whose template writes no end behind an answer: the {} will not learn to stop; write them as prompt and "
      "completion",
      losses.unended, learner);
}

data_format data_format_of(const fs::path& model, const model_config& config, std::int64_t row_length) {
  data_format format;
  format.tokens = load_tokenizer(model);
  format.end_tokens = end_tokens_of(config, *format.tokens);
  format.vocab_size = config.vocab_size;
  format.row_length = row_length;
  format.context = config.context;
  if (auto sources = find_chat_sources(model))
    format.chat = std::make_shared<const chat_format>(std::move(*sources), model.string() + ": chat template",
                                                      format.tokens, day_of_data);
  return format;
}

void check_utf8(const fs::path& file, std::string_view text) {
  const std::string_view good = valid_stretch(text, 0);
  if (good.size() < text.size())
    refuse("{}:{}: is no UTF-8: unpack or convert the file, or leave the line out", file.string(),
           1 + std::count(good.begin(), good.end(), '\n'));
}

void check_is_no_table(const fs::path& file) {
  const std::string ending = lower_case(file.extension().string());
  if (ending == ".csv" || ending == ".tsv")
    refuse("{}: is a table: write one JSON object a line, such as {{\"prompt\": …, \"completion\": …}}", file.string());
}

std::size_t line_with_example(std::string_view text) {
  for (std::size_t number = 1, seen = 0; !text.empty() && seen < lines_looked_at; ++number) {
    const std::string_view line = take_line(text);
    if (is_blank(line)) continue;
    if (detail::is_example(line)) return number;
    ++seen;
  }
  return 0;
}

training_data read_training_data(const fs::path& file, const data_format& format) {
  training_data data;
  fnv_hash print;
  data.losses = read_examples(file, format, [&](training_example&& example, std::size_t source) {
    add_to(print, example);
    data.examples.push_back(std::move(example));
    data.sources.push_back(source);
  });
  data.fingerprint = print.value();
  return data;
}

training_summary summarize_training_data(const fs::path& file, const data_format& format) {
  training_summary found;
  fnv_hash print;
  found.losses = read_examples(file, format, [&](training_example&& example, std::size_t) {
    add_to(print, example);
    ++found.examples;
    found.learned_tokens += learned_tokens_of(example);
  });
  found.fingerprint = print.value();
  return found;
}

}  // namespace troupe
