#pragma once
#include <string>

#include "base/error.hpp"

namespace troupe::test {

/// The text of the input_error that `action` throws; empty if it throws none.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace troupe::test
