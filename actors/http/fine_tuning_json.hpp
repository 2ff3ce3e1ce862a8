// Fine-tuning jobs, their events and checkpoints in the published form, from what the journal says of them.
#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// `about`: what the client said beside the job's own options; an object.
nlohmann::ordered_json fine_tune_json(const std::string& model, const nlohmann::ordered_json& job,
                                      const nlohmann::ordered_json& about);
nlohmann::ordered_json event_json(const std::string& job, const nlohmann::ordered_json& event);
nlohmann::ordered_json checkpoint_json(const std::string& job, const std::string& adapter,
                                       const nlohmann::ordered_json& event);

}  // namespace troupe
