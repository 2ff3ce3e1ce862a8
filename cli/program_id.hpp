#pragma once
#include <string>

namespace troupe {

/// A number that the linker made of this program's contents (its build-id), in hexadecimal digits: another one for
/// other sources, another compiler or other options. "unknown" where the program was linked without.
std::string program_id();

}  // namespace troupe
