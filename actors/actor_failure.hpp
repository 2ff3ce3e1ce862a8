#pragma once
#include <exception>

namespace troupe {

/// What an actor did not expect went wrong in it. If it ended alone, the process would be there and leave others
/// without an answer for ever; so the process ends, with 1 and one line, and whoever watches it (`troupe up`, Slurm,
/// Kubernetes) starts it again.
[[noreturn]] void end_process_after(const char* actor, const std::exception_ptr& fault);

}  // namespace troupe
