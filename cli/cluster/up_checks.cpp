// What `troupe up` can refuse before anything starts.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "actors/adapters/adapter_files.hpp"
#include "actors/front_settings.hpp"
#include "base/host_port.hpp"
#include "base/paths.hpp"
#include "cli/cluster/up.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/output.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "cluster/config/config_place.hpp"
#include "cluster/journal/journal.hpp"
#include "cluster/launch/launch.hpp"
#include "cluster/launch/machine.hpp"
#include "cluster/launch/up_lock.hpp"
#include "model/arch/device.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/formats/model_files.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {
namespace {

/// The folder or file of an adapter to preload: the one that is named for it, or one of its name where adapters are.
std::optional<std::filesystem::path> files_to_preload(const cluster_config& config, const preloaded_adapter& wanted) {
  if (!wanted.folder.empty()) return wanted.folder;
  return is_adapter_name(wanted.name) ? adapter_among(config.adapters.dir, wanted.name) : std::nullopt;
}

/// If the head runs on this machine: each adapter to preload must be a folder or file with an adapter for the model, or
/// a version in the journal, which is where the head will look. Of a cluster that is up the journal is the head's own:
/// what is nowhere else may be there.
void check_preload(const cluster_config& config, const model_config& model, bool is_up) {
  adapter_catalogue::options known;
  known.base_name = config.model.name;
  std::optional<adapter_catalogue> saved;
  for (const preloaded_adapter& wanted : config.adapters.preload) {
    const std::string& adapter = wanted.name;
    if (const auto files = files_to_preload(config, wanted)) {
      if (const auto problem = adapter_catalogue(known).check_name(adapter))
        refuse_at(config, "adapters.preload", "{}", problem->text);
      if (!at_key(config, "adapters.preload", [&] { return path_exists(*files); }))
        refuse_at(config, "adapters.preload", "adapter {}: there is no folder or file {}", adapter, files->string());
      (void)at_key(config, "adapters.preload", [&] { return read_adapter(*files, model); });
      continue;
    }
    if (is_up) continue;
    const journal::options book = journal_options_of(config);
    if (!saved) saved.emplace(known, path_exists(book.file) ? journal(book).load_catalogue() : catalogue_records());
    if (!saved->load(adapter))
      refuse_at(config, "adapters.preload",
                "adapter {}: there is none, and no folder {}: name another, or a folder or .gguf file as {}=PATH",
                adapter, (config.adapters.dir / adapter).string(), adapter);
  }
}

/// Folders and files of adapters that no request finds.
std::vector<std::string> unnameable_adapters(const std::filesystem::path& dir) {
  std::vector<std::string> found;
  for (const std::filesystem::path& each : entries_of(dir)) {
    const std::string name = (is_folder(each) ? each.filename() : each.stem()).string();
    const bool is_adapter = is_folder(each) || each.extension() == ".gguf";
    if (is_adapter && !name.starts_with('.') && !is_adapter_name(name)) found.push_back(each.filename().string());
  }
  std::ranges::sort(found);
  return found;
}

/// A request that asks for one of them is told no more than that there is none.
void tell_of_unnameable_adapters(const cluster_config& config) {
  const auto found = unnameable_adapters(config.adapters.dir);
  if (found.empty()) return;
  const std::string more = found.size() > 1 ? fmt::format(" and {} more", found.size() - 1) : "";
  const std::string line = fmt::format("{}: no request can name {}{}: {}", config.adapters.dir.string(), found.front(),
                                       more, adapter_name_rule);
  write_error("troupe: " + one_line(line) + "\n");
}

/// The folder itself is made later.
void check_state_folder(const cluster_config& config) {
  std::filesystem::path around = config.state_dir;
  while (!is_seen(around) && around.has_relative_path()) around = around.parent_path();
  if (!is_folder(around))
    refuse_at(config, "cluster.state_dir",
              "{}: cannot be made, since {} is no folder: choose another state_dir or XDG_STATE_HOME",
              config.state_dir.string(), around.string());
  if (::access(around.c_str(), W_OK | X_OK) != 0)
    refuse_at(config, "cluster.state_dir", "{}: {} cannot be written to: choose another state_dir or XDG_STATE_HOME",
              config.state_dir.string(), around.string());
}

/// An ipc address is a file: its folder must be there.
void check_listening(const cluster_config& config, const node_config& node) {
  const auto file = socket_file(node.listen);
  if (!file || !is_this_machine(node.host)) return;
  const std::filesystem::path folder = std::filesystem::path(*file).parent_path();
  if (!is_folder(folder))
    refuse_at(config, node.is_head() ? "cluster.listen" : node_key(node.name, "listen"),
              "{}: there is no folder {}: make it, or listen elsewhere", node.listen, folder.string());
}

/// No bad input: the port may be free the next time.
void check_port(const std::optional<host_port>& place, const std::string& what, const std::string& remedy) {
  if (place && is_port_taken(*place))
    throw std::runtime_error(fmt::format("{}: the port is in use: {}, or end what uses it", what, remedy));
}

/// If only the head saw that its port is taken, whoever has it might be asked for the status of this cluster.
void check_ports_of_head(const cluster_config& config) {
  if (!is_this_machine(config.head().host)) return;
  const auto check = [](std::string_view key, const std::string& address, const std::optional<host_port>& place) {
    check_port(place, fmt::format("{} {}", key, address),
               fmt::format("set another {0} in [cluster] (troupe serve: --{0})", key));
  };
  check("listen", config.listen, split_endpoint(config.listen));
  check("http", config.http, split_host_port(config.http));
}

/// A node takes a port that has the number 0 from those that are free.
void check_ports(const cluster_config& config) {
  check_ports_of_head(config);
  for (const node_config& node : config.nodes) {
    const auto place = split_endpoint(node.listen);
    if (node.is_head() || !node.autostart || !place || place->port == 0 || !is_this_machine(node.host)) continue;
    check_port(place, fmt::format("{}: listen {}", node.name, node.listen), "set another listen for " + node.name);
  }
}

constexpr std::uint64_t plenty = std::uint64_t{1} << 50;

/// What a node of this machine may have. While the cluster is up, what is free says nothing: it has taken some of it.
std::uint64_t memory_here(const node_config& node, bool is_up) {
  if (node.memory || !is_up) return memory_of(node);
  const auto whole = node.device.is_cpu() ? machine_memory() : std::nullopt;
  return whole ? static_cast<std::uint64_t>(*whole) : plenty;
}

/// What the workers that start with the cluster will offer. Of another host's memory nothing is known yet.
std::vector<worker_offer> offers_of(const cluster_config& config, bool is_up) {
  std::vector<worker_offer> offers;
  for (const node_config& node : config.nodes) {
    if (!node.autostart || !node.is_worker()) continue;
    const bool is_here = is_this_machine(node.host);
    offers.push_back({.name = node.name,
                      .host = plain_host(node.host),
                      .memory = is_here ? memory_here(node, is_up) : node.memory.value_or(plenty),
                      .layers = node.layers,
                      .replica = node.replica,
                      .pool = is_here && node.shares_memory() ? "this machine" : ""});
  }
  return offers;
}

/// Checks the devices of the nodes that start here. This process leaves the GPUs that it asks: they are the nodes'.
std::vector<worker_offer> ask_devices(const cluster_config& config, bool is_up) {
  const auto for_each = [&](auto ask) {
    for (const node_config& node : config.nodes)
      if (node.autostart && is_this_machine(node.host)) ask(node);
  };
  for_each([&](const node_config& node) { check_device(config, node); });
  std::vector<worker_offer> offers = offers_of(config, is_up);
  for_each([](const node_config& node) { leave_device(node.device); });
  return offers;
}

/// Refuses here, before anything starts, what cannot work; and packs the model once, so that not every node does it.
/// `is_up`: the cluster that is up now, with another file or this one, will have ended before this file is used.
void check_site(const cluster_config& config, bool is_up) {
  (void)load_options_of(config);
  (void)kv_of(config);
  check_state_folder(config);
  (void)at_key(config, "model.path", [&] { return open_model(config.model.path); });  // before it is packed, and ports
  for (const node_config& node : config.nodes) check_listening(config, node);
  if (!is_up) check_ports(config);
  const node_site site = make_site(config, config.head().name);
  const supervisor_parts planned = supervisor_parts_of(site, 0);
  (void)bus_options_of(site);  // the keys
  if (is_this_machine(config.head().host)) {
    tell_of_unnameable_adapters(config);
    check_preload(config, site.model->config, is_up);
  }
  const auto placed = place(ask_devices(config, is_up), planned.shape, planned.wanted);
  if (!placed) refuse_at(config, placed.error().key, "{}", placed.error().text);
}

}  // namespace

void check_before_up(const cluster_config& config) {
  if (const auto holder = find_up(config)) refuse_second_up(config, *holder);
  check_site(config, false);
}

void check_beside_up(const cluster_config& config) {
  check_site(config, find_up(config).has_value());
}

}  // namespace troupe
