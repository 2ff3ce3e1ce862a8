// Fine-tuning jobs, their events and checkpoints in OpenAI's published form, made from the journal's records.
#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// `record`: an object with what the client gave besides the job's own options.
nlohmann::ordered_json fine_tune_json(const std::string& model, const nlohmann::ordered_json& job,
                                      const nlohmann::ordered_json& record);
nlohmann::ordered_json event_json(const std::string& job, const nlohmann::ordered_json& event);
/// Of the checkpoint at `place` among a job's events, oldest first; what was measured last before it goes with it.
nlohmann::ordered_json checkpoint_json(const std::string& job, const std::string& adapter,
                                       const nlohmann::ordered_json& events, std::size_t place);

}  // namespace troupe
