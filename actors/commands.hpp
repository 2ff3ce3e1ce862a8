#pragma once
#include <exception>
#include <string>

#include "actors/messages.hpp"
#include "base/error.hpp"

namespace troupe {

/// What a command returns, or what it throws, as the answer to whoever asked. `run` returns JSON.
template <class Run>
command_answer answer_of(const Run& run) {
  try {
    return {run(), {}, false};
  } catch (const input_error& error) {
    return {{}, error.what(), true};
  } catch (const std::exception& error) {
    return {{}, error.what(), false};
  }
}

}  // namespace troupe
