// What others are shown of the versions.
#include "actors/adapters/adapter_shelf.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

std::string adapter_shelf::list_json(std::string_view after) const {
  return json_of(catalogue_.list(after, page_versions));
}

adapter_shelf::summary adapter_shelf::shown() const {
  const auto answering = catalogue_.answering(page_versions);
  return {json_of(answering), catalogue_.size() - answering.size()};
}

std::string adapter_shelf::json_of(const std::vector<adapter_entry>& entries) const {
  json list = json::array();
  for (const adapter_entry& entry : entries) {
    const bool gone = entry.state == adapter_state::ready && !details_.contains(entry.version);
    list.push_back({{"name", entry.spec.name},
                    {"version", entry.full_name()},
                    {"state", gone ? "missing" : name_of(entry.state)},
                    {"current", catalogue_.is_current(entry)},
                    {"rank", entry.spec.rank},
                    {"bytes", entry.spec.bytes},
                    {"sha256", entry.spec.sha256}});
    const std::string& error = gone ? faults_.at(entry.version) : entry.error;
    if (!error.empty()) list.back()["error"] = error;
  }
  return dump(list);
}

adapter_directory::snapshot adapter_shelf::snapshot() const {
  adapter_directory::snapshot shown;
  const std::vector<std::string> bases = names_of_base(options_.base_name);
  const auto add = [&](const std::string& name, adapter_version version) {
    shown.names[name] = version;
    for (const auto& base : bases) shown.names[base + ":" + name] = version;
  };
  for (const auto& [version, details] : details_) {
    const adapter_entry& entry = *catalogue_.find(version);
    shown.versions.emplace(version, details);
    if (entry.state != adapter_state::ready) continue;
    add(entry.full_name(), version);
    if (catalogue_.is_current(entry)) add(entry.spec.name, version);
  }
  for (const auto& base : bases) shown.names[base] = no_adapter;  // also where an adapter is called so
  return shown;
}

}  // namespace troupe
