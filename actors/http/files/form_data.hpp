#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A field of a form, such as a file.
struct form_part {
  std::string name, filename, content;
};
/// The parts of a multipart/form-data body. Throws input_error.
std::vector<form_part> parse_form(std::string_view content_type, std::string_view body);

}  // namespace troupe
