#include "model/formats/json_input.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/mapped_file.hpp"

namespace troupe::detail {
namespace {

/// Makes the value that a text spells, and refuses what the library lets pass: duplicate keys, deep nesting, and too
/// many values. The library's own maker takes quadratic time where an object whose keys have an order has many of them,
/// and where many objects lie in one value.
template <class Json>
class json_builder {
 public:
  json_builder(const std::string& where, json_limits limits) : where_(where), limits_(limits) {}

  Json take() { return std::move(root_); }

  // What the library's parser calls.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(typename Json::number_integer_t value) { return add(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) { return add(value); }
  bool number_float(typename Json::number_float_t value, const typename Json::string_t&) { return add(value); }
  bool string(typename Json::string_t& value) { return add(std::move(value)); }
  bool binary(typename Json::binary_t&) { return false; }  // JSON texts have none
  bool start_object(std::size_t) {
    keys_.emplace_back();
    return open(Json::object());
  }
  bool key(typename Json::string_t& name) {
    count();
    member_ = append(open_.back()->template get_ref<typename Json::object_t&>(), name);
    if (member_ == nullptr) refuse("{}: has the key \"{}\" twice", where_, name.substr(0, 200));
    return true;
  }
  bool end_object() {
    keys_.pop_back();
    return close();
  }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  template <class Error>
  bool parse_error(std::size_t, const std::string&, const Error& error) {
    throw error;
  }

 private:
  void count() {
    if (static_cast<int>(open_.size()) > limits_.depth)
      refuse("{}: is nested deeper than {} levels", where_, limits_.depth);
    if (++values_ > limits_.values) refuse("{}: has more than {} values", where_, limits_.values);
  }

  template <class Value>
  bool add(Value&& value) {
    count();
    put(Json(std::forward<Value>(value)));
    return true;
  }
  bool open(Json&& empty) {
    count();
    open_.push_back(&put(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    count();
    return true;
  }

  /// Only the container that was opened last grows, so those around it stay where they are.
  Json& put(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *member_ = std::move(value);
    auto& list = open_.back()->template get_ref<typename Json::array_t&>();
    list.push_back(std::move(value));
    return list.back();
  }

  /// The place of a value; null where the object has the name already and may not. Objects whose keys have an order are
  /// lists.
  template <class Object>
  Json* append(Object& object, const std::string& name) {
    if constexpr (requires { object.emplace_back(name, nullptr); }) {
      const auto [known, is_new] = keys_.back().emplace(name, object.size());
      if (is_new) return &object.emplace_back(name, nullptr).second;
      return limits_.repeated_keys ? &object.begin()[static_cast<std::ptrdiff_t>(known->second)].second : nullptr;
    } else {
      const auto [place, is_new] = object.emplace(name, nullptr);
      return is_new || limits_.repeated_keys ? &place->second : nullptr;
    }
  }

  const std::string& where_;
  json_limits limits_;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;                                ///< of the object that was opened last: its value comes next
  std::vector<std::map<std::string, std::size_t>> keys_;  ///< and their places, of the open objects that are lists
};

/// A number that is whole and that no rounding made so.
std::optional<std::int64_t> whole_number(double number) {
  constexpr double most = 9007199254740991;  // 2^53 - 1
  if (std::abs(number) > most || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

/// Without the library's own number: "[json.exception.parse_error.101] parse error at line 1, column 2: …". Which line
/// it is says nothing where there is one.
std::string reason_of(const nlohmann::json::exception& error, bool is_one_line) {
  std::string said = error.what();
  said.erase(0, said.find("] ") == said.npos ? 0 : said.find("] ") + 2);
  constexpr std::string_view first_line = "line 1, ";
  if (const auto at = said.find(first_line); is_one_line && at != said.npos) said.erase(at, first_line.size());
  return said.substr(0, 300);
}

/// For the words that Python's json writes for floats that are no numbers. `read`: bytes up to where the library
/// stopped, which is behind the first one that it does not know.
std::string_view advice_on(std::string_view text, std::size_t read) {
  const std::string_view word = read > 0 && read <= text.size() ? text.substr(read - 1) : "";
  const bool is_float = word.starts_with("Infinity") || word.starts_with("NaN");
  return is_float ? ": Infinity and NaN are no JSON: replace or remove them" : "";
}

}  // namespace

template <class Json>
Json parse_json_as(std::string_view text, const std::string& where, json_limits limits) {
  json_builder<Json> builder(where, limits);
  try {
    (void)Json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string reason = reason_of(error, text.find('\n') == text.npos);
    refuse("{}: is no valid JSON: {}{}", where, reason, advice_on(text, error.byte));
  } catch (const nlohmann::json::exception& error) {
    refuse("{}: is no valid JSON: {}", where, reason_of(error, text.find('\n') == text.npos));
  }
  return builder.take();
}

nlohmann::json parse_json(std::string_view text, const std::string& where, json_limits limits) {
  return parse_json_as<nlohmann::json>(text, where, limits);
}

std::string read_text(const std::filesystem::path& path, std::size_t limit) {
  const mapped_file file(path);
  const std::string_view text = file.text();
  if (text.size() > limit) refuse("{}: has {} bytes, more than the {} allowed", path.string(), text.size(), limit);
  return std::string(text);
}

nlohmann::json read_json(const std::filesystem::path& path, std::size_t limit) {
  return parse_json(read_text(path, limit), path.string());
}

template <class Json>
std::optional<std::int64_t> to_integer(const Json& value) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_float()) return whole_number(value.template get<double>());
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
