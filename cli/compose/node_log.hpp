// What a node says: lines with the time, on standard output, which `troupe up` makes its log.
#pragma once
#include <string>
#include <string_view>

namespace troupe {

void say(const std::string& line);
/// The same, and one on standard error if that goes elsewhere.
void warn(const std::string& line);
/// What was said, of a line of a log.
std::string_view without_time(std::string_view line);

}  // namespace troupe
