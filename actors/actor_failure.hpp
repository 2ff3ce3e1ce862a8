#pragma once
#include <exception>

namespace troupe {

/// Called when an actor has an unexpected failure. If only the actor ended, others would wait for its answers for ever.
/// So the process ends with exit code 1 and one line, and whatever watches it (`troupe up`, Slurm, Kubernetes) starts
/// it again.
[[noreturn]] void end_process_after(const char* actor, const std::exception_ptr& fault);

}  // namespace troupe
