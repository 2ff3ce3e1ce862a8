#include "base/gguf_name.hpp"

#include <algorithm>

#include "base/ascii.hpp"

namespace troupe {
namespace {

/// -00001-of-00003, with a digit where this has a zero.
constexpr std::string_view piece = "-00000-of-00000";

bool ends_as_piece(std::string_view name) {
  if (name.size() <= piece.size()) return false;
  return std::ranges::equal(name.substr(name.size() - piece.size()), piece, [](char of_name, char wanted) {
    return wanted == '0' ? of_name >= '0' && of_name <= '9' : of_name == wanted;
  });
}

}  // namespace

std::string name_without_gguf(std::string_view file_name) {
  constexpr std::string_view ending = ".gguf";
  if (file_name.size() <= ending.size() || !lower_case(file_name).ends_with(ending)) return std::string(file_name);
  file_name.remove_suffix(ending.size());
  if (ends_as_piece(file_name)) file_name.remove_suffix(piece.size());
  return std::string(file_name);
}

}  // namespace troupe
