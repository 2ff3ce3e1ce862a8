#pragma once
#include <string_view>

namespace troupe {

/// page.html, as it was built in.
std::string_view page_html();

}  // namespace troupe
