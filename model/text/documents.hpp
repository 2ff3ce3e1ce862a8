#pragma once
#include <string_view>
#include <vector>

namespace troupe {

/// One of the documents that a plain text holds, without the line breaks around it; never empty.
struct text_document {
  std::string_view text;
  bool ends = false;  ///< <|endoftext|> came after it
};
std::vector<text_document> documents_of(std::string_view text);

}  // namespace troupe
