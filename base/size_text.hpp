#pragma once
#include <cstdint>
#include <string>

namespace troupe {

/// How people read a number of bytes: "1.50 GiB".
std::string size_text(std::uint64_t bytes);

}  // namespace troupe
