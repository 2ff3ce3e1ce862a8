#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// What Gemma 4 writes before and behind a text; nothing in it is escaped.
inline constexpr std::string_view text_mark = R"(<|"|>)";

/// Reads values as Gemma 4 writes them, {way:<|"|>by car<|"|>,hours:[1,2]}: keys have no quotes. JSON is read as well,
/// for arguments of a demanded call have that form.
class unquoted_reader {
 public:
  explicit unquoted_reader(std::string_view text) : rest_(text) {}

  /// False if there is none, or not all of it.
  bool read() { return read_value(0); }
  /// What was read, as JSON; of a value whose end is missing, what there is of it.
  const std::string& as_json() const { return json_; }
  bool is_at_end() const;

 private:
  bool read_value(int depth);
  bool read_parts(char begin, char end, int depth);
  bool read_key();
  bool read_name();
  bool read_marked_text();
  bool read_json_text();
  bool read_word();

  std::string_view rest_;
  std::string json_;
};

}  // namespace troupe
