#include "actors/status_board.hpp"

#include <fmt/format.h>

namespace troupe {

/// Puts texts together, since sections are JSON already.
std::string status_board::json_of(std::initializer_list<const char*> sections) const {
  std::string members;
  const auto add = [&](const char* name, const std::string& json) {
    members += fmt::format(R"({}"{}":{})", members.empty() ? "" : ",", name, json);
  };
  for (const char* section : sections) {
    const std::string posted = read(section);
    add(section, posted.empty() ? "[]" : posted);
  }
  if (const std::string others = read("adapters.others"); !others.empty()) add("other_adapters", others);
  if (const std::string others = read("jobs.others"); !others.empty()) add("other_jobs", others);
  if (const std::string problem = read("journal"); !problem.empty()) add("journal", problem);
  if (const std::string problem = read("placement"); !problem.empty()) add("placement", problem);
  return members;
}

}  // namespace troupe
