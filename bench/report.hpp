#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::bench {

/// One measured line: a name, and figures with their units in the order they are shown.
struct row {
  std::string name;
  std::vector<std::pair<std::string, double>> figures;
};

/// Prints rows as a table, or as JSON lines {"name":…, figure:…}, as they come.
class report {
 public:
  using printer = void (*)(std::string_view text);  ///< throws where nobody can read it: then nothing more is measured

  report(bool json, printer print) : json_(json), print_(print) {}
  void title(std::string_view text) const;
  void add(const row& line) const;

 private:
  bool json_;
  printer print_;
};

}  // namespace troupe::bench
