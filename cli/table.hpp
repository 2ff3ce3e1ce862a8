#pragma once
#include <string>
#include <vector>

namespace troupe {

/// Columns as wide as their widest cell. The first row is the head; cells that look like numbers go to the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace troupe
