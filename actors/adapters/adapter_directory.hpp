#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/messages.hpp"

namespace troupe {

/// What a replica must know of an adapter to load it.
struct adapter_details {
  std::string full_name;  ///< like "pricing@3"
  std::string sha256;
  std::vector<adapter_file_info> files;
  std::int64_t bytes = 0;    ///< in memory
  std::int64_t created = 0;  ///< when its contents came: seconds since 1970
};

/// What lists show of a name that an adapter answers to.
struct listed_adapter {
  std::string name;       ///< "pricing" or "pricing@3"
  std::string full_name;  ///< of the version
  std::int64_t created = 0;

  friend bool operator==(const listed_adapter&, const listed_adapter&) = default;
};

/// The newest state of the adapter store, for everyone to read at any time. Thread-safe.
class adapter_directory {
 public:
  struct snapshot {
    /// All names of ready versions ("pricing", "pricing@3", "base:pricing" …) and those of the bare base.
    std::unordered_map<std::string, adapter_version> names;
    std::unordered_map<adapter_version, adapter_details> versions;
    std::vector<listed_adapter> listed = {};  ///< by name; publish() makes it
  };

  void publish(snapshot next) {
    next.listed = list_of(next);
    auto shared = std::make_shared<const snapshot>(std::move(next));
    const std::lock_guard lock(mutex_);
    current_ = std::move(shared);
  }
  std::shared_ptr<const snapshot> read() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  std::optional<adapter_version> resolve(const std::string& name) const {
    if (name.empty()) return no_adapter;
    const auto current = read();
    const auto found = current->names.find(name);
    return found == current->names.end() ? std::nullopt : std::optional(found->second);
  }
  /// While somebody holds the result, the version's files stay even if it is unloaded: a replica may need them again.
  std::shared_ptr<const void> hold(adapter_version version) const {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const void>& known = held_[version];
    auto held = known.lock();
    if (!held) known = held = std::make_shared<const char>();
    return held;
  }
  bool is_held(adapter_version version) const {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [](const auto& each) { return each.second.expired(); });
    return held_.contains(version);
  }
  std::optional<adapter_details> find(adapter_version version) const {
    const auto current = read();
    const auto found = current->versions.find(version);
    return found == current->versions.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static std::vector<listed_adapter> list_of(const snapshot& from) {
    std::vector<listed_adapter> list;
    for (const auto& [name, version] : from.names) {
      const auto details = from.versions.find(version);
      if (details != from.versions.end() && name.find(':') == name.npos)
        list.push_back({name, details->second.full_name, details->second.created});
    }
    std::ranges::sort(list, {}, &listed_adapter::name);
    return list;
  }

  mutable std::mutex mutex_;
  mutable std::unordered_map<adapter_version, std::weak_ptr<const void>> held_;
  std::shared_ptr<const snapshot> current_ = std::make_shared<const snapshot>();
};

}  // namespace troupe
