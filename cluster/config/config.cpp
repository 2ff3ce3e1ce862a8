#include "cluster/config/config.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/gguf_name.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "cluster/config/config_address.hpp"
#include "cluster/config/config_impl.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t most_file_bytes = 1 << 20;

std::filesystem::path default_state_dir(const cluster_config& config) {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && *state == '/') return std::filesystem::path(state) / "troupe" / config.name;
  const char* home = std::getenv("HOME");
  if (home && *home == '/') return std::filesystem::path(home) / ".local/state/troupe" / config.name;
  refuse_at(config, "cluster",
            "there is no home folder for the cluster's state: set HOME, XDG_STATE_HOME, or state_dir in [cluster]");
}

/// Any free port of the address that the file gives, or of all addresses if the file gives a name.
std::string default_listen(const node_config& node) {
  if (is_loopback_host(node.host))
    return tcp_endpoint(node.host.find(':') != std::string::npos ? node.host : "127.0.0.1", 0);
  return is_numeric_host(node.host) ? tcp_endpoint(node.host, 0) : "tcp://*:0";
}

/// Requests call a model by what it is, not by how it is stored. Ollama's blobs have no name but a digest: sha256- and
/// 64 digits, of which the first tell them apart.
std::string default_model_name(const std::filesystem::path& model) {
  constexpr std::string_view blob = "sha256-";
  constexpr std::size_t all_digits = 64, shown_digits = 12;
  std::string name = name_without_gguf(model_name_of(model));
  if (name.starts_with(blob) && name.size() == blob.size() + all_digits) name.resize(blob.size() + shown_digits);
  return name;
}

void fill_in(cluster_config& config) {
  if (config.name.empty()) refuse_at(config, "cluster.name", "the cluster has no name: name = \"rooms\" in [cluster]");
  if (config.state_dir.empty()) config.state_dir = default_state_dir(config);
  if (config.model.name.empty()) config.model.name = default_model_name(config.model.path);
  if (config.adapters.dir.empty()) config.adapters.dir = config.state_dir / "adapters";
  for (auto& node : config.nodes)
    if (node.listen.empty()) node.listen = node.is_head() ? config.listen : default_listen(node);
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code problem;
  if (!path_exists(file)) refuse("{}: there is no such file: name a cluster's TOML file", file.string());
  if (!std::filesystem::is_regular_file(file, problem))
    refuse("{}: is no file: name a cluster's TOML file; troupe serve takes a model, and says which file it writes",
           file.string());
  if (std::filesystem::file_size(file, problem) > most_file_bytes)
    refuse("{}: has more than 1 MiB: this is no cluster's file", file.string());
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) refuse("{}: cannot be read: see its permissions", file.string());
  return text;
}

}  // namespace

cluster_config read_cluster_config(const std::filesystem::path& file) {
  return parse_cluster_config(read_text(file), file);
}

cluster_config parse_cluster_config(std::string_view text, const std::filesystem::path& file) {
  cluster_config config;
  config.label = file.string();
  config.source = std::filesystem::absolute(file).lexically_normal();
  detail::read_sections(config, detail::read_toml(text, config.label));
  fill_in(config);
  detail::check_cluster(config);
  return config;
}

const node_config& cluster_config::head() const {
  return *std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.is_head(); });
}

const node_config* cluster_config::find(std::string_view node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.name == node; });
  return found == nodes.end() ? nullptr : &*found;
}

std::string cluster_config::head_endpoint() const {
  return reachable_endpoint(listen, head().host);
}

std::string model_name_of(const std::filesystem::path& model) {
  const std::filesystem::path folder = model.parent_path();
  const std::string cached = (folder.filename() == "snapshots" ? folder.parent_path() : model).filename().string();
  return cached.starts_with("models--") ? cached.substr(cached.rfind("--") + 2) : model.filename().string();
}

void make_state_folder(const std::filesystem::path& folder) {
  try {
    make_private_folder(folder);  // jobs and files of all who use the cluster will lie there
  } catch (const write_failure& problem) {
    refuse("{} by state_dir or XDG_STATE_HOME", problem.what());
  }
}

std::string_view to_text(node_role role) {
  switch (role) {
    case node_role::router:
      return "router";
    case node_role::scheduler:
      return "scheduler";
    case node_role::worker:
      return "worker";
    case node_role::trainer:
      return "trainer";
  }
  return "";
}

}  // namespace troupe
