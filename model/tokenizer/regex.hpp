#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::detail {

/// A pattern of Oniguruma, the language of tokenizer.json, in the words of PCRE2. What would mean something else there
/// is refused; `where` names the pattern's place. `with_later`: sets name the later characters of their categories.
std::string to_pcre2(std::string_view pattern, const std::string& where, bool with_later);
/// A pattern that matches this text and nothing else.
std::string escape_pattern(std::string_view literal);

/// Whether PCRE2 knows a script by this name.
bool is_script(std::string_view name);

/// Whether a valid text has characters that came after Unicode 14, the last that PCRE2 10.42 knows. Tokens should not
/// depend on its version.
bool has_later_characters(std::string_view text);

/// A letter, mark, digit, connector or joiner: what \w stands for in the patterns of published tokenizers.
bool is_word_character(char32_t value);

/// A compiled pattern. Immutable: any number of threads may match with one object.
class regex {
 private:
  struct compiled;

 public:
  struct match {
    std::size_t begin;
    std::size_t end;
  };
  /// Matches one after another in a text that is valid UTF-8 and outlives the cursor.
  class cursor {
   public:
    cursor(const regex& pattern, std::string_view text);
    ~cursor();
    cursor(const cursor&) = delete;
    cursor& operator=(const cursor&) = delete;
    /// The next match, into `found`: an empty one only where no other ended. Throws input_error when the pattern takes
    /// too many steps.
    bool next(match& found);

   private:
    int run(std::size_t from);
    const regex& pattern_;
    const compiled& used_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t last_end_ = std::string_view::npos;
    struct state;
    std::unique_ptr<state> state_;
  };

  /// `pattern` in the language of PCRE2. `with_later` is that for texts of later characters, if it differs: their long
  /// sets cost time.
  regex(const std::string& pattern, std::string where, const std::string& with_later = {});

 private:
  std::shared_ptr<const compiled> compiled_, with_later_;
  std::string where_;
};

/// A pattern of Oniguruma.
regex regex_of(std::string_view pattern, const std::string& where);

}  // namespace troupe::detail
