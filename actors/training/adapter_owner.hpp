// Whose the name of an adapter is: the key's that published it first, and the administrators' where that was no key.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "cluster/journal/journal.hpp"

namespace troupe {

/// Empty: the administrators'. Nothing: nobody's. `folder`: where the administrators put adapters, each under its name,
/// whether they were published yet or not; empty: nowhere.
std::optional<std::string> owner_of_adapter(const journal& book, const std::string& name,
                                            const std::filesystem::path& folder);

/// `who`: a key; empty: an administrator.
inline bool may_publish(const std::string& who, const std::optional<std::string>& owner_of_name) {
  return who.empty() || !owner_of_name || *owner_of_name == who;
}
/// Throws foreign_error.
[[noreturn]] void refuse_adapter(const std::string& name);

}  // namespace troupe
