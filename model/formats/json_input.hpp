#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace troupe::detail {

struct json_limits {
  int depth = 32;
  std::size_t values = 4'000'000;  ///< keys included: bounds the memory that a hostile text can ask for
  bool repeated_keys = false;      ///< what a key says last counts, as where a model writes; else it may be there once
};

/// Parses JSON from outside or refuses it by `where`: no key twice in an object, no deep nesting.
/// Json is nlohmann::json, or nlohmann::ordered_json where the order of keys means something.
template <class Json>
Json parse_json_as(std::string_view text, const std::string& where, json_limits limits = {});
nlohmann::json parse_json(std::string_view text, const std::string& where, json_limits limits = {});

/// A text file of at most `limit` bytes.
std::string read_text(const std::filesystem::path& path, std::size_t limit);
/// The JSON in such a file.
nlohmann::json read_json(const std::filesystem::path& path, std::size_t limit);

/// The fields of a JSON object, read by name and type. A field that is null counts as absent; one of another type is
/// refused by its name. Keeps a reference to `object`.
template <class Json>
class json_fields {
 public:
  json_fields(const Json& object, std::string where);

  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Written in the file, be it null.
  bool names(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  /// One integer or a list of them; empty when absent.
  std::vector<std::int64_t> integers(std::string_view key) const;
  /// A list that must be there.
  const Json& list(std::string_view key) const;
  /// Its elements, each with its place: "where.key[0]".
  template <class Read>
  void for_each_in(std::string_view key, const Read& read) const {
    std::size_t i = 0;
    for (const Json& element : list(key))
      read(element, where_ + "." + std::string(key) + "[" + std::to_string(i++) + "]");
  }
  const std::string& where() const { return where_; }

 private:
  template <class T>
  std::optional<T> typed(std::string_view key, bool (Json::*is_typed)() const, std::string_view wanted) const;

  const Json& object_;
  std::string where_;
};

/// The value as an int64, if it is an integer that fits. 5.0 is one: some clients have no other numbers.
template <class Json>
std::optional<std::int64_t> to_integer(const Json& value);

}  // namespace troupe::detail
