// Where a cluster's file says something, and how it is refused there.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "cluster/config/config.hpp"

namespace troupe {

/// The key of a node's setting: "node.w0.layers".
std::string node_key(std::string_view node, std::string_view setting);
/// `file:line:column` of a key, or of the closest thing around it that is in the file.
std::string place_of(const cluster_config& config, std::string_view key);

/// What is wrong with a cluster's file, at one of its places.
class config_error : public input_error {
 public:
  /// `key` as in place_of; empty for what is no value of a key.
  config_error(std::string_view place, std::string_view key, std::string_view problem)
      : input_error(fmt::format("{}: {}", place, problem)), key_(key.substr(key.rfind('.') + 1)), problem_(problem) {}

  const std::string& key() const { return key_; }          ///< without its section: "context"
  const std::string& problem() const { return problem_; }  ///< without the place

 private:
  std::string key_, problem_;
};

/// Refuses what the file says there. Throws config_error.
template <class... Args>
[[noreturn]] void refuse_at(const cluster_config& config, std::string_view key, fmt::format_string<Args...> format,
                            Args&&... args) {
  throw config_error(place_of(config, key), key, fmt::format(format, std::forward<Args>(args)...));
}

/// What `get` returns. What it refuses is what the file says at that key.
template <class Get>
auto at_key(const cluster_config& config, std::string_view key, Get get) {
  try {
    return get();
  } catch (const input_error& error) {
    refuse_at(config, key, "{}", error.what());
  }
}

}  // namespace troupe
