#pragma once
#include <string>

namespace troupe {

/// What `troupe --version` prints: how this program was built, and what it uses of this processor.
std::string version_text();

}  // namespace troupe
