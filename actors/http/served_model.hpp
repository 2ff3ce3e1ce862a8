#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/requests/prompting.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/formats/sampling_advice.hpp"

namespace troupe {

/// Other servers call a model or an adapter by its path or by its place at Hugging Face, and so do their clients: of
/// "Qwen/Qwen3-0.6B" the last part counts.
constexpr std::string_view own_name(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

/// What requests are checked against. Immutable, except for the adapters, which others change.
struct served_model {
  std::string model;       ///< the name of the base
  sampling_advice advice;  ///< for fields that a request leaves out
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;

  /// Of "tiny.gguf" the ending does not count, either.
  bool is_base(std::string_view name) const { return is_base_name(own_name(name), model); }

  /// The version of an adapter that a name means now; empty if it means the base or nothing.
  std::optional<adapter_details> find_adapter(std::string_view name) const {
    const auto version = adapters->resolve(std::string(own_name(name)));
    return version ? adapters->find(*version) : std::nullopt;
  }
};

}  // namespace troupe
