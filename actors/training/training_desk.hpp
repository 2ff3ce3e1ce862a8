// Fine-tunes on the head: accepted, given to trainers, written down, published.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "actors/status_board.hpp"
#include "actors/training/training_intake.hpp"
#include "cluster/training/training_queue.hpp"

namespace troupe {

struct training_desk_parts {
  jobs_actor jobs;
  adapter_store_actor store;
  std::shared_ptr<status_board> board;
  std::function<void(const std::string& line)> say;
  training_intake::options intake;
  model_id base;
  training_queue::options queue = {};
  double may_delay = 0.1;                                 ///< a step of requests, as a share of its time
  std::uint64_t adapter_memory = std::uint64_t{1} << 30;  ///< of each worker; a trained adapter must fit
  std::string quantization = {};                          ///< of the base that is loaded
  bool idle_priority = true;                     ///< trainers' threads run only when nobody else wants the processor
  duration patience = std::chrono::seconds(30);  ///< without a step; then the job's events say why that may be
  duration comeback = std::chrono::seconds(30);  ///< how long a job waits for its trainer while others are free
  std::filesystem::path adapter_folder = {};     ///< whose adapters are the administrators' by their names
  std::size_t most_of_key = 16;                  ///< jobs that are being made, or are not over
};

training_desk_actor spawn_training_desk(caf::actor_system& system, training_desk_parts parts);

}  // namespace troupe
