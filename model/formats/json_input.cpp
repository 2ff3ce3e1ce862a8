#include "model/formats/json_input.hpp"

#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/mapped_file.hpp"

namespace troupe::detail {
namespace {

/// Watches a parse for what the library lets pass: duplicate keys, deep nesting, and too many values.
class json_guard {
 public:
  json_guard(const std::string& where, json_limits limits) : where_(where), limits_(limits) {}

  template <class Json>
  bool operator()(int depth, typename Json::parse_event_t event, const Json& parsed) {
    using event_t = typename Json::parse_event_t;
    if (depth > limits_.depth) refuse("{}: is nested deeper than {} levels", where_, limits_.depth);
    if (++values_ > limits_.values) refuse("{}: has more than {} values", where_, limits_.values);
    if (event == event_t::object_start) keys_.emplace_back();
    if (event == event_t::object_end) keys_.pop_back();
    if (event == event_t::key) check_key(parsed.template get_ref<const std::string&>());
    return true;
  }

 private:
  void check_key(const std::string& key) {
    if (!keys_.back().insert(key).second) refuse("{}: has the key \"{}\" twice", where_, key.substr(0, 200));
  }

  const std::string& where_;
  json_limits limits_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

template <class Json>
Json parse_json_as(std::string_view text, const std::string& where, json_limits limits) {
  json_guard guard(where, limits);
  try {
    return Json::parse(text.begin(), text.end(), [&](int depth, typename Json::parse_event_t event, Json& parsed) {
      return guard(depth, event, static_cast<const Json&>(parsed));
    });
  } catch (const nlohmann::json::exception& error) {
    const std::string said = error.what();  // "[its own number] what is wrong"
    refuse("{}: is no valid JSON: {}", where, said.substr(said.find("] ") == said.npos ? 0 : said.find("] ") + 2, 300));
  }
}

nlohmann::json parse_json(std::string_view text, const std::string& where, json_limits limits) {
  return parse_json_as<nlohmann::json>(text, where, limits);
}

std::string read_text(const std::filesystem::path& path, std::size_t limit) {
  const mapped_file file(path);
  const auto bytes = file.bytes();
  if (bytes.size() > limit) refuse("{}: has {} bytes, more than the {} allowed", path.string(), bytes.size(), limit);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nlohmann::json read_json(const std::filesystem::path& path, std::size_t limit) {
  return parse_json(read_text(path, limit), path.string());
}

template <class Json>
std::optional<std::int64_t> to_integer(const Json& value) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.template get<std::uint64_t>() > most) return std::nullopt;
  return value.template get<std::int64_t>();
}

template <class Json>
json_fields<Json>::json_fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) refuse("{}: should be a JSON object, but is a JSON {}", where_, object.type_name());
}

template <class Json>
const Json* json_fields<Json>::find(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

template <class Json>
bool json_fields<Json>::names(std::string_view key) const {
  return object_.contains(std::string(key));
}

template <class Json>
std::optional<std::int64_t> json_fields<Json>::integer(std::string_view key) const {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  const auto number = to_integer(*value);
  if (!number) refuse("{}: \"{}\" should be an integer", where_, key);
  return number;
}

template <class Json>
const Json& json_fields<Json>::list(std::string_view key) const {
  const auto* value = find(key);
  if (!value || !value->is_array()) refuse("{}: \"{}\" should be a list", where_, key);
  return *value;
}

template <class Json>
template <class T>
std::optional<T> json_fields<Json>::typed(std::string_view key, bool (Json::*is_typed)() const,
                                          std::string_view wanted) const {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (!(value->*is_typed)()) refuse("{}: \"{}\" should be {}", where_, key, wanted);
  return value->template get<T>();
}

template <class Json>
std::optional<double> json_fields<Json>::number(std::string_view key) const {
  return typed<double>(key, &Json::is_number, "a number");
}

template <class Json>
std::optional<bool> json_fields<Json>::boolean(std::string_view key) const {
  return typed<bool>(key, &Json::is_boolean, "true or false");
}

template <class Json>
std::optional<std::string> json_fields<Json>::text(std::string_view key) const {
  return typed<std::string>(key, &Json::is_string, "a text");
}

template <class Json>
std::optional<std::vector<std::string>> json_fields<Json>::texts(std::string_view key) const {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_array()) refuse("{}: \"{}\" should be a list of texts", where_, key);
  std::vector<std::string> all;
  for (const auto& element : *value) {
    if (!element.is_string()) refuse("{}: \"{}\" should be a list of texts", where_, key);
    all.push_back(element.template get<std::string>());
  }
  return all;
}

template <class Json>
std::vector<std::int64_t> json_fields<Json>::integers(std::string_view key) const {
  const auto* value = find(key);
  if (!value) return {};
  std::vector<std::int64_t> all;
  const auto add = [&](const Json& element) {
    const auto number = to_integer(element);
    if (!number) refuse("{}: \"{}\" should be an integer or a list of integers", where_, key);
    all.push_back(*number);
  };
  if (!value->is_array())
    add(*value);
  else
    for (const auto& element : *value) add(element);
  return all;
}

template nlohmann::json parse_json_as<nlohmann::json>(std::string_view, const std::string&, json_limits);
template nlohmann::ordered_json parse_json_as<nlohmann::ordered_json>(std::string_view, const std::string&,
                                                                      json_limits);
template std::optional<std::int64_t> to_integer(const nlohmann::json&);
template std::optional<std::int64_t> to_integer(const nlohmann::ordered_json&);
template class json_fields<nlohmann::json>;
template class json_fields<nlohmann::ordered_json>;

}  // namespace troupe::detail
