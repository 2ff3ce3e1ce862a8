#pragma once
#include <memory>
#include <string>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/requests/prompting.hpp"
#include "model/formats/sampling_advice.hpp"

namespace troupe {

/// What a request is read against. Immutable but for the adapters, which are there to be shared.
struct served_model {
  std::string model;       ///< what the base is called
  sampling_advice advice;  ///< where a request says nothing
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;

  /// Refuses what neither the base nor an adapter can be called. Empty: the base.
  void check_name(const std::string& name) const;
  /// "pricing@2", or the base's name.
  std::string full_name(const std::string& name) const;
};

}  // namespace troupe
