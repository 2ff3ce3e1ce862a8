#pragma once
#include <exception>
#include <string>

#include "actors/messages.hpp"
#include "base/error.hpp"

namespace troupe {

/// Turns what `run` returns (JSON) or throws into the answer to a command.
template <class Run>
command_answer answer_of(const Run& run) {
  try {
    return {run()};
  } catch (const unknown_error& error) {
    return {{}, error.what(), command_fault::unknown};
  } catch (const input_error& error) {
    return {{}, error.what(), command_fault::bad_input};
  } catch (const std::exception& error) {
    return {{}, error.what(), command_fault::failed};
  }
}

}  // namespace troupe
