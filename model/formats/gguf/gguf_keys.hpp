#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/gguf/gguf_facts.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// What a GGUF file says of a model of one architecture: its keys, as "llama.block_count" for block_count, and the
/// facts that its tensors tell.
class arch_keys {
 public:
  arch_keys(const gguf_file& file, std::string arch) : file_(file), arch_(std::move(arch)), facts_(read_facts(file)) {}

  const std::string& arch() const { return arch_; }
  const gguf_facts& facts() const { return facts_; }
  const std::string& where() const { return file_.name; }

  template <class T>
  std::optional<T> get(std::string_view key) const {
    return file_.get<T>(full(key));
  }
  bool has(std::string_view key) const { return file_.metadata.contains(full(key)); }
  template <class T>
  T needed(std::string_view key) const {
    if (auto value = get<T>(key)) return *value;
    refuse("{}: lacks the metadata key \"{}\"", where(), full(key));
  }
  std::int64_t size(std::string_view key) const { return checked(key, needed<std::int64_t>(key)); }
  std::int64_t size(std::string_view key, std::int64_t otherwise) const {
    return checked(key, get<std::int64_t>(key).value_or(otherwise));
  }
  /// A list of numbers; none where the key has one value or is not there.
  std::optional<std::vector<std::int64_t>> numbers(std::string_view key) const {
    const auto found = file_.metadata.find(full(key));
    if (found == file_.metadata.end() || !std::holds_alternative<std::vector<std::int64_t>>(found->second))
      return std::nullopt;
    return std::get<std::vector<std::int64_t>>(found->second);
  }
  /// A list of yes and no; none where the key has one value or is not there.
  std::optional<std::vector<bool>> choices(std::string_view key) const {
    const auto found = file_.metadata.find(full(key));
    if (found == file_.metadata.end() || !std::holds_alternative<std::vector<bool>>(found->second)) return std::nullopt;
    return std::get<std::vector<bool>>(found->second);
  }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", arch_, key); }

 private:
  std::int64_t checked(std::string_view key, std::int64_t value) const {
    if (value <= 0 || value > std::int64_t{1} << 31) refuse("{}: \"{}\" is {}", where(), full(key), value);
    return value;
  }

  const gguf_file& file_;
  std::string arch_;
  gguf_facts facts_;
};

inline std::size_t listed_layers(const model_config& config) {  // which is not checked yet
  return to_size(std::min<std::int64_t>(config.layers, 1 << 16));
}

}  // namespace troupe::detail
