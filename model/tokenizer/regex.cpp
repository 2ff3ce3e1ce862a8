#include "model/tokenizer/regex.hpp"

#include "base/error.hpp"
#include "base/pcre2_impl.hpp"
#include "base/utf8.hpp"

namespace troupe::detail {
namespace {

// What one match may cost. Published patterns take a few steps per character; this stops the ones made to hang.
constexpr std::uint32_t most_match_steps = 20'000'000;
constexpr std::size_t longest_pattern = 16384;

std::string describe(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

pcre2_owned<pcre2_code> compile(const std::string& pattern, const std::string& where) {
  if (pattern.size() > longest_pattern) refuse("{}: the pattern is longer than {} bytes", where, longest_pattern);
  const auto context = own(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_owned<pcre2_code> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                                             &offset, context.get()));
  if (!code) refuse("{}: the pattern cannot be compiled: {} at byte {}", where, describe(error), offset);
  return code;
}

}  // namespace

struct regex::compiled {
  pcre2_owned<pcre2_code> code;
  bool may_be_empty = false;  ///< a match
  pcre2_owned<pcre2_match_context> limits;

  static std::shared_ptr<const compiled> from(const std::string& pattern, const std::string& where) {
    auto fresh = std::make_shared<compiled>();
    fresh->code = compile(pattern, where);
    // Where there is no JIT for this machine the interpreter does the same work, slower.
    pcre2_jit_compile(fresh->code.get(), PCRE2_JIT_COMPLETE);
    std::uint32_t may_be_empty = 0;
    pcre2_pattern_info(fresh->code.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
    fresh->may_be_empty = may_be_empty != 0;
    fresh->limits = own(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(fresh->limits.get(), most_match_steps);
    return fresh;
  }
};

struct regex::cursor::state {
  pcre2_owned<pcre2_match_data> data;
};

regex::regex(const std::string& pattern, std::string where, const std::string& with_later) : where_(std::move(where)) {
  compiled_ = compiled::from(pattern, where_);
  with_later_ = with_later.empty() || with_later == pattern ? compiled_ : compiled::from(with_later, where_);
}

regex::cursor::cursor(const regex& pattern, std::string_view text)
    : pattern_(pattern),
      used_(pattern.compiled_ == pattern.with_later_ || !has_later_characters(text) ? *pattern.compiled_
                                                                                    : *pattern.with_later_),
      text_(text),
      state_(new state{own(pcre2_match_data_create_from_pattern(used_.code.get(), nullptr))}) {}

regex::cursor::~cursor() = default;

int regex::cursor::run(std::size_t from) {
  const auto attempt = [&](std::uint32_t options) {
    return pcre2_match(used_.code.get(), reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       PCRE2_NO_UTF_CHECK | options, state_->data.get(), used_.limits.get());
  };
  const int outcome = attempt(0);
  return outcome == PCRE2_ERROR_JIT_STACKLIMIT ? attempt(PCRE2_NO_JIT) : outcome;
}

bool regex::cursor::next(match& found) {
  const auto has_more = [&] { return at_ < text_.size() || (at_ == text_.size() && at_ > 0 && used_.may_be_empty); };
  while (has_more()) {
    const int outcome = run(at_);
    if (outcome == PCRE2_ERROR_NOMATCH) return false;
    if (outcome < 0) refuse("{}: the pattern cannot be matched: {}", pattern_.where_, describe(outcome));
    const auto* bounds = pcre2_get_ovector_pointer(state_->data.get());
    // \K may put the start behind the end, or before where the last match ended: such a match is none.
    const bool is_new = bounds[0] < bounds[1] || (bounds[0] == bounds[1] && bounds[1] != last_end_);
    if (is_new && bounds[0] >= at_) {
      found = {bounds[0], bounds[1]};
      at_ = last_end_ = found.end;
      return true;
    }
    const auto past = std::max<std::size_t>(bounds[1], at_);
    if (past >= text_.size()) return false;
    at_ = past + next_code_point(text_, past).length;
  }
  return false;
}

bool is_script(std::string_view name) {
  const auto pattern = fmt::format("\\p{{sc:{}}}", name);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const pcre2_owned<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr));
  return code != nullptr;
}

bool is_word_character(char32_t value) {
  static const regex pattern = regex_of(R"([\w\u200c\u200d])", "word characters");
  std::string text;
  append_utf8(text, value);
  regex::match found{};
  return regex::cursor(pattern, text).next(found);
}

}  // namespace troupe::detail
