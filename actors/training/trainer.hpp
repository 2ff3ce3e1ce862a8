// Works on the job that the head gave it last: fetches the data, lets a training_task compute, reports how far it is,
// and keeps the result until the head has it. On a thread of its own, since it reads and writes files.
#pragma once
#include "actors/interfaces.hpp"
#include "actors/training/training_task.hpp"

namespace troupe {

struct trainer_parts {
  trainers_head_actor head;
  training_site site;
};

trainer_actor spawn_trainer(caf::actor_system& system, trainer_parts parts);

}  // namespace troupe
