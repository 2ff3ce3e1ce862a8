#include "cli/cluster/serve_file.hpp"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/utf8.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

/// TOML reads texts as JSON writes them, but for one control character, which JSON leaves as it is. So it can be said
/// which flag has one.
std::string in_toml(const nlohmann::ordered_json& value) {
  std::string text = json_line(value);
  for (std::size_t at; (at = text.find('\x7f')) != text.npos;) text.replace(at, 1, "\\u007f");
  return text;
}

/// `key = value`, unless the user left it to the defaults.
template <class Value>
std::string setting(std::string_view key, const Value& value) {
  return value == Value() ? "" : fmt::format("{} = {}\n", key, in_toml(value));
}

/// Relative folders are those of the user's own folder, not of the file's.
std::vector<std::string> named_adapters(const serve_options& options) {
  std::vector<std::string> named;
  for (const std::string& each : options.adapter) {
    const auto equals = each.find('=');
    if (equals == each.npos || equals == 0 || equals + 1 == each.size())
      refuse("--adapter {}: write NAME=PATH, the name that requests ask for and the adapter's folder or .gguf file",
             each);
    named.push_back(each.substr(0, equals + 1) + whole_path(each.substr(equals + 1)).string());
  }
  return named;
}

}  // namespace

std::filesystem::path whole_path(const std::string& path) {
  if (!is_utf8(path)) refuse("'{}' is no UTF-8, as a cluster's file must be: rename it", path);
  return plain_path(path);
}

std::string path_setting(const serve_options& options) {
  return setting("path", whole_path(options.model.path).string());
}

std::string cluster_text(const serve_options& options, const std::string& name, const std::string& state_dir) {
  const model_options& model = options.model;
  std::string text = "# Written by `troupe serve`, each time anew. A copy is a file for `troupe up` like any other.\n";
  text += "[cluster]\n" + setting("name", name) + setting("state_dir", state_dir) + setting("listen", options.listen);
  if (options.http) text += fmt::format("http = {}\n", in_toml(*options.http));
  text += setting("http_origins", options.http_origins);
  text += setting("insecure", options.insecure) + setting("need_keys", options.need_keys);
  text += "\n[model]\n" + path_setting(options) + setting("name", options.name) + setting("quant", model.quant) +
          setting("keep", model.keep);
  text += setting("kv", model.kv) + setting("context", model.context);
  text += "\n[adapters]\n" + setting("preload", named_adapters(options));
  if (!options.adapters.empty()) text += setting("dir", whole_path(options.adapters).string());
  text += "\n[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\"]\n";
  text += "\n[[node]]\nname = \"w0\"\nroles = [\"worker\"]\n";
  text += setting("threads", model.threads) + setting("device", model.device);
  text += "\n# Works on fine-tunes (troupe train), with what the worker leaves. Costs nothing while there is none.\n";
  return text + "[[node]]\nname = \"coach\"\nroles = [\"trainer\"]\n";
}

}  // namespace troupe
