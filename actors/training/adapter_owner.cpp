#include "actors/training/adapter_owner.hpp"

#include "actors/adapters/adapter_files.hpp"
#include "base/error.hpp"

namespace troupe {

std::optional<std::string> owner_of_adapter(const journal& book, const std::string& name,
                                            const std::filesystem::path& folder) {
  if (auto known = book.owner_of_adapter(name)) return known;
  const bool is_theirs = !folder.empty() && is_adapter_name(name) && adapter_among(folder, name);
  return is_theirs ? std::optional(std::string()) : std::nullopt;
}

void refuse_adapter(const std::string& name) {
  throw foreign_error(fmt::format("the adapter {} is not this key's to replace: choose another name (suffix)", name));
}

}  // namespace troupe
