#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace troupe::detail {

/// A regular expression for the names of modules, compiled once. Copies share it.
/// It fits as Python's re.fullmatch does, with a bound on the work that it can ask for.
class module_pattern {
 public:
  /// Throws input_error where it is no expression; `where` is what errors call its place.
  static module_pattern of_whole_names(const std::string& pattern, const std::string& where);
  /// From the beginning or a dot on.
  static module_pattern of_ends(const std::string& pattern, const std::string& where);

  bool fits(std::string_view module) const;

 private:
  module_pattern(std::string_view before, const std::string& pattern, std::string_view after, const std::string& where);
  std::string_view shown() const { return std::string_view(pattern_).substr(0, 200); }

  std::string pattern_, where_;
  std::shared_ptr<const void> code_;  // PCRE2's
};

}  // namespace troupe::detail
