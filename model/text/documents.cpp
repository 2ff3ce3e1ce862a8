#include "model/text/documents.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view separator = "<|endoftext|>", line_breaks = "\r\n";

}  // namespace

std::vector<text_document> documents_of(std::string_view text) {
  std::vector<text_document> documents;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view document = text.substr(0, end);
    document.remove_prefix(std::min(document.find_first_not_of(line_breaks), document.size()));
    document = document.substr(0, document.find_last_not_of(line_breaks) + 1);
    if (!document.empty()) documents.push_back({document, end < text.size()});
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return documents;
}

}  // namespace troupe
