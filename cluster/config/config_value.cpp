#include "cluster/config/config_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/ranges.h>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/number_in.hpp"
#include "cluster/config/config_address.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe::detail {
namespace {

/// How errors call a value of the wrong type: "a text".
std::string kind_of(const setting& value) {
  constexpr std::array names = {"a text",        "a whole number", "a number with a fraction",
                                "true or false", "a list",         "a table"};
  if (const auto* other = std::get_if<setting::other>(&value.content)) return other->kind;
  return names[value.content.index()];
}

std::optional<double> unit_bytes(std::string_view unit) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"kB", 1e3}, {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
  };
  for (const auto& [name, bytes] : units)
    if (unit == name) return bytes;
  return {};
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto digits_end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto amount = number_in<double>(text.substr(0, digits_end));
  text.remove_prefix(digits_end);
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = unit_bytes(text);
  if (!amount || !unit || *amount * *unit > 0x1p60) return {};
  return static_cast<std::uint64_t>(std::llround(*amount * *unit));
}

std::optional<layer_range> parse_layers(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = number_in<int>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_in<int>(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > 9999) return {};
  return layer_range{*first, *last};
}

std::optional<node_role> parse_role(std::string_view text) {
  for (const node_role role : all_roles)
    if (text == to_text(role)) return role;
  return {};
}

/// What one may choose from: "router, scheduler" …
std::string all_role_names() {
  std::string names;
  for (const node_role role : all_roles) names.append(names.empty() ? "" : ", ").append(to_text(role));
  return names;
}

/// What a user typed, short enough for one line.
std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}{}\"", text.substr(0, 80), text.size() > 80 ? "…" : "");
}

}  // namespace

void refuse_place(const cluster_config& config, config_place at, std::string_view problem, std::string_view key) {
  throw config_error(fmt::format("{}:{}:{}", config.label, at.line, at.column), key, problem);
}

void config_value::refuse(std::string_view problem) const {
  refuse_place(into_, content_.place, fmt::format("{} {}", key_, problem), key_);
}

void config_value::refuse_type(std::string_view wanted) const {
  refuse(fmt::format("should be {}, but is {}", wanted, kind_of(content_)));
}

const std::string& config_value::as_text(std::string_view wanted) const {
  const auto* text = std::get_if<std::string>(&content_.content);
  if (!text) refuse_type(wanted);
  if (text->size() > 4096) refuse("is too long");
  for (const unsigned char c : *text)
    if (c < ' ' || c == 0x7f) refuse("holds a control character");
  return *text;
}

std::string config_value::text() const {
  const std::string& text = as_text("a text in quotes");
  if (text.empty()) refuse("is empty: leave the key out or say something");
  return text;
}

bool config_value::truth() const {
  const auto* truth = std::get_if<bool>(&content_.content);
  if (!truth) refuse_type("true or false, without quotes");
  return *truth;
}

int config_value::number(int least, int most) const {
  const auto* number = std::get_if<std::int64_t>(&content_.content);
  if (!number) refuse_type("a whole number");
  if (*number < least || *number > most) refuse(fmt::format("is {}: allowed are {} to {}", *number, least, most));
  return static_cast<int>(*number);
}

double config_value::share(double most) const {
  const auto* whole = std::get_if<std::int64_t>(&content_.content);
  const auto* real = std::get_if<double>(&content_.content);
  if (!whole && !real) refuse_type("a number");
  const double number = whole ? static_cast<double>(*whole) : *real;
  if (!(number >= 0 && number <= most)) refuse(fmt::format("is {}: allowed are 0 to {}", number, most));
  return number;
}

std::uint64_t config_value::bytes() const {
  if (const auto* number = std::get_if<std::int64_t>(&content_.content); number && *number > 0)
    return static_cast<std::uint64_t>(*number);
  const auto* text = std::get_if<std::string>(&content_.content);
  const auto parsed = text ? parse_bytes(*text) : std::nullopt;
  if (!parsed || *parsed == 0) refuse("should be an amount of memory: \"4GiB\", \"512MiB\" or a number of bytes");
  return *parsed;
}

std::vector<std::string> config_value::texts() const {
  const auto* list = std::get_if<setting::list>(&content_.content);
  if (!list) refuse_type("a list of texts: [\"a\", \"b\"]");
  if (list->size() > 1024) refuse("is too long: at most 1024 texts");
  std::vector<std::string> texts;
  for (const auto& each : *list) texts.push_back(config_value(each, key_, into_).text());
  return texts;
}

std::string config_value::one_of(std::initializer_list<std::string_view> allowed) const {
  const std::string chosen = text();
  if (std::find(allowed.begin(), allowed.end(), chosen) == allowed.end())
    refuse(fmt::format("is {}: choose one of {}", in_quotes(chosen), fmt::join(allowed, ", ")));
  return chosen;
}

std::filesystem::path config_value::path() const {
  return path_of(text());
}

/// What a shell would have replaced is refused: else it would be the name of a folder beside the file.
std::filesystem::path config_value::path_of(std::string_view chosen) const {
  if (chosen.starts_with('~') || chosen.starts_with('$'))
    refuse(fmt::format("is {}: write the whole path, since no shell reads this file", in_quotes(chosen)));
  const auto normal = (into_.source.parent_path() / chosen).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();  // "models/llama/" is called llama, too
}

std::vector<preloaded_adapter> config_value::preloaded() const {
  std::vector<preloaded_adapter> adapters;
  for (const std::string& each : texts()) {
    const auto equals = each.find('=');
    preloaded_adapter adapter{.name = each.substr(0, equals), .folder = {}};
    if (equals != each.npos) {
      if (equals == 0 || equals + 1 == each.size())
        refuse(fmt::format("has {}: write \"NAME\" or \"NAME=FOLDER\"", in_quotes(each)));
      adapter.folder = path_of(std::string_view(each).substr(equals + 1));
    }
    const auto before = std::ranges::find(adapters, adapter.name, &preloaded_adapter::name);
    if (before != adapters.end() && before->folder != adapter.folder)
      refuse_place(into_, content_.place, fmt::format("adapter {} has two folders: give one", adapter.name), key_);
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

std::filesystem::path config_value::absolute_path() const {
  const std::filesystem::path chosen = text();
  if (!chosen.is_absolute()) refuse(fmt::format("is {}: write the whole path, from /", in_quotes(chosen.string())));
  return chosen;
}

std::string config_value::name() const {
  const std::string chosen = text();
  if (!is_file_name(chosen)) refuse(fmt::format("is {}: {}", in_quotes(chosen), file_name_rule));
  return chosen;
}

std::string config_value::model_name() const {
  const std::string chosen = text();
  const std::string last = chosen.substr(chosen.rfind('/') + 1);
  if (last.size() < chosen.size() && is_file_name(last))
    refuse(fmt::format("is {0}: write {1}, which requests may call {0}, too", in_quotes(chosen), in_quotes(last)));
  return name();
}

std::string config_value::host() const {
  const std::string chosen = text();
  if (!is_host_text(chosen) || is_any_host(chosen))
    refuse(fmt::format("is {}: write the address or the name of one machine", in_quotes(chosen)));
  return chosen;
}

std::string config_value::ssh_target() const {
  const std::string chosen = text();
  const auto at = chosen.find('@');
  const std::string_view user = at == std::string::npos ? "user" : std::string_view(chosen).substr(0, at);
  const std::string_view place = at == std::string::npos ? chosen : std::string_view(chosen).substr(at + 1);
  if (!is_host_text(user) || !is_host_text(place))
    refuse(fmt::format("is {}: write HOST or USER@HOST", in_quotes(chosen)));
  return chosen;
}

layer_range config_value::layers() const {
  const auto range = parse_layers(as_text("layers as \"0-10\""));
  if (!range) refuse(fmt::format("is {}: write \"0-10\" or \"7\", from 0, both ends included", in_quotes(text())));
  return *range;
}

device_id config_value::device() const {
  const std::string chosen = text();
  const auto device = device_from_name(chosen);
  if (!device) refuse(fmt::format("is {}: write \"cpu\" or \"cuda:0\", \"cuda:1\" …", in_quotes(chosen)));
  return *device;
}

std::set<node_role> config_value::roles() const {
  const auto* list = std::get_if<setting::list>(&content_.content);
  if (!list) refuse_type("a list of roles: [\"worker\"]");
  std::set<node_role> roles;
  for (const auto& each : *list) {
    const config_value word(each, key_, into_);
    const std::string text = word.text();
    const auto role = parse_role(text);
    if (!role) word.refuse(fmt::format("is {}: choose one of {}", in_quotes(text), all_role_names()));
    if (!roles.insert(*role).second) word.refuse(fmt::format("has \"{}\" twice", text));
  }
  if (roles.empty()) refuse("is empty: choose some of " + all_role_names());
  return roles;
}

std::string config_value::endpoint() const {
  const std::string chosen = text();
  // A socket's path has to fit into sockaddr_un.
  const bool is_socket = chosen.starts_with("ipc:///") && chosen.size() <= 6 + 100;
  if (!is_socket && !split_endpoint(chosen))
    refuse(
        fmt::format("is {}: write \"tcp://HOST:PORT\", the port at most 65535, or \"ipc:///FILE\"", in_quotes(chosen)));
  return chosen;
}

std::vector<std::string> config_value::origins() const {
  std::vector<std::string> chosen = texts();
  for (const std::string& each : chosen)
    if (!is_web_origin(each))
      refuse(
          fmt::format("has {}: write each page's origin as its browser does, in lower case, without a path and "
                      "without the ports 80 and 443: \"https://chat.example.org\", \"http://localhost:3000\"",
                      in_quotes(each)));
  return chosen;
}

std::string config_value::http_place() const {
  const std::string& chosen = as_text("a text in quotes");
  if (!chosen.empty() && !split_host_port(chosen))
    refuse(fmt::format("is {}: write \"HOST:PORT\", the port from 1 to 65535, or \"\" for none", in_quotes(chosen)));
  return chosen;
}

}  // namespace troupe::detail
