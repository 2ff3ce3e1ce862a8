#include "actors/actor_failure.hpp"

#include <cstdio>
#include <new>
#include <string>

#include <fmt/format.h>

namespace troupe {
namespace {

std::string text_of_fault(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const std::bad_alloc&) {
    return "there is no memory left";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

void end_process_after(const char* actor, const std::exception_ptr& fault) {
  const std::string line =
      fmt::format("troupe: {} cannot go on: {}: this process ends, and works again once it is started again\n", actor,
                  text_of_fault(fault));
  std::fputs(line.c_str(), stderr);
  std::fflush(stdout);
  std::_Exit(1);  // destructors would wait for actors that wait for this one
}

}  // namespace troupe
