#pragma once
#include <string_view>

namespace troupe {

/// The text of page.html, which is built into the program.
std::string_view page_html();

}  // namespace troupe
