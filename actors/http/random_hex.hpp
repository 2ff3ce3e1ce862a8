#pragma once
#include <string>

namespace troupe {

/// For ids that nobody else has.
std::string random_hex(int digits);

}  // namespace troupe
