#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// Reads the arguments of a call as Python has them, which LFM2 writes: (way="by car", hours=[1, 2], now=True).
class pythonic_reader {
 public:
  /// What is behind the function's name.
  explicit pythonic_reader(std::string_view text) : rest_(text) {}

  /// False if there are none, or not all of them.
  bool read_arguments();
  /// What was read, as JSON; of a value whose end is missing, what there is of it.
  const std::string& as_json() const { return json_; }
  std::string_view rest() const { return rest_; }

 private:
  struct notation;

  bool read_value(int depth, std::string_view behind);
  bool read_parts(const notation& of, int depth);
  bool read_key(const notation& of);
  bool read_text(std::string_view behind);
  void read_escape();
  bool ends_text(std::string_view quote, std::string_view behind) const;
  bool read_word();

  std::string_view rest_;
  std::string json_;
};

}  // namespace troupe
