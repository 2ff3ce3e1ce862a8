// What a node says: lines with the time, on standard output, which `troupe up` makes its log.
#pragma once
#include <string>

namespace troupe {

void say(const std::string& line);
/// The same, and one on standard error.
void warn(const std::string& line);

}  // namespace troupe
