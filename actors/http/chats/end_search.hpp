#pragma once
#include <cstddef>
#include <string_view>

namespace troupe {

/// Looks for an end in a text that is longer each time, and reads nothing of it twice: calls come token by token, and
/// may be long. All return npos while it has not come.
class end_search {
 public:
  /// Where the object or text of JSON ends that `value` begins with.
  std::size_t of_value(std::string_view value);
  /// Where a mark stands first that is in no text of the JSON before it.
  std::size_t outside_texts(std::string_view json, std::string_view mark);
  /// Where a mark stands first that is in no text between two `quote`s, which are not longer than it.
  std::size_t outside_quotes(std::string_view text, std::string_view quote, std::string_view mark);
  /// Where a mark stands first.
  std::size_t of_text(std::string_view text, std::string_view mark);

 private:
  std::size_t at_ = 0;  ///< so much is read
  int depth_ = 0;
  bool quoted_ = false;
};
/// The same for a value that is all there is.
inline std::size_t end_of_value(std::string_view value) {
  return end_search().of_value(value);
}

}  // namespace troupe
