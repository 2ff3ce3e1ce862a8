#include "cli/cluster/serve_folder.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "actors/http/access/api_keys.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

/// What the model is called, in letters that a cluster's name may have.
std::string cluster_name(const std::string& model) {
  std::string name = model.substr(0, 64);
  for (char& each : name)
    if (!is_name({&each, 1})) each = '-';
  if (name.empty() || !is_letter_or_digit(name.front())) name = "model" + name.substr(0, 59);
  return name;
}

/// The file says where the state is: whoever ends the cluster by it may have another home.
written_cluster cluster_called(const std::string& name, const serve_options& options) {
  written_cluster made;
  made.config = parse_cluster_config(cluster_text(options, name), "troupe serve");
  made.text = cluster_text(options, name, made.config.state_dir.string());
  made.config.label = made.config.source = made.config.state_dir / "cluster.toml";
  return made;
}

/// The state folder, if it is that of another model, or of a cluster that has a file of its own.
std::optional<taken_folder> taken_by_another(const cluster_config& config, const serve_options& options) {
  std::error_code ignored;
  if (!is_folder(config.state_dir) || std::filesystem::is_empty(config.state_dir, ignored)) return std::nullopt;
  std::ifstream file(config.source, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("\n" + path_setting(options)) != text.npos) return std::nullopt;
  constexpr std::string_view key = "\npath = ";
  const auto at = text.find(key);
  if (at == text.npos) return taken_folder{config.state_dir, {}};
  const auto begin = at + key.size();
  return taken_folder{config.state_dir, text.substr(begin, text.find('\n', begin) - begin)};
}

std::string whose_it_is(const taken_folder& taken) {
  return fmt::format("{} is the state folder of {}", taken.folder.string(),
                     taken.model.empty() ? "a cluster with a file of its own" : "the model " + taken.model);
}

std::string way_into(const taken_folder& taken) {
  if (taken.model.empty()) return {};
  return fmt::format("to go on there, write this model's path into {}", (taken.folder / "cluster.toml").string());
}

}  // namespace

written_cluster own_cluster(const serve_options& options) {
  const std::string name =
      cluster_name(options.name.empty() ? model_name_of(whole_path(options.model.path)) : options.name);
  written_cluster made = cluster_called(name, options);
  std::vector<taken_folder> passed;
  for (int number = 2; const auto taken = taken_by_another(made.config, options); ++number) {
    passed.push_back(*taken);
    const std::string end = fmt::format("-{}", number);
    made = cluster_called(name.substr(0, 64 - end.size()) + end, options);
  }
  made.passed = std::move(passed);
  return made;
}

void check_keys_of_passed(const written_cluster& made) {
  const cluster_config& config = made.config;
  if (config.http.empty() || config.need_keys || path_exists(api_keys_file(config.state_dir))) return;
  for (const taken_folder& taken : made.passed) {
    if (!path_exists(api_keys_file(taken.folder))) continue;
    const std::string way = way_into(taken);
    refuse(
        "{}, which has API keys, and {} would answer without: {}{}--need-keys gives it keys of its own, and another "
        "--name none",
        whose_it_is(taken), config.name, way, way.empty() ? "" : "; ");
  }
}

void tell_of_passed(const written_cluster& made) {
  for (const taken_folder& taken : made.passed) {
    const std::string way = way_into(taken);
    write_error(fmt::format("troupe: {}: its keys, adapters and jobs stay there, and this is {}{}{}\n",
                            whose_it_is(taken), made.config.name, way.empty() ? "" : "; ", way));
  }
}

}  // namespace troupe
