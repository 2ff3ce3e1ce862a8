#pragma once
#include <memory>
#include <string>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/requests/prompting.hpp"
#include "model/formats/sampling_advice.hpp"

namespace troupe {

/// What requests are checked against. Immutable, except for the adapters, which others change.
struct served_model {
  std::string model;       ///< the name of the base
  sampling_advice advice;  ///< for fields that a request leaves out
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;

  /// Refuses a name that can mean neither the base nor an adapter. An empty name means the base.
  void check_name(const std::string& name) const;
  /// The version that a name means now, like "pricing@2", or the base's name.
  std::string full_name(const std::string& name) const;
};

}  // namespace troupe
