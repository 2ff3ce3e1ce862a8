#include "actors/http/served_model.hpp"

#include "actors/http/api_error.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {

void served_model::check_name(const std::string& name) const {
  if (name.empty() || name == model || adapters->resolve(name) || is_adapter_name(name)) return;
  throw unknown_model(name);
}

std::string served_model::full_name(const std::string& name) const {
  if (name == model) return model;
  const auto version = adapters->resolve(name);
  const auto details = version ? adapters->find(*version) : std::nullopt;
  return details ? details->full_name : model;
}

}  // namespace troupe
