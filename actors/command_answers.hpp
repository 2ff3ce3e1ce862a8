#pragma once
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "actors/messages.hpp"
#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/result.hpp"
#include "base/whole_file.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

/// For HTTP's clients: where the head's machine keeps its files is none of their business.
inline std::string without_path(const write_failure& failure) {
  return failure.is_of_full_disk() ? "the server's disk is full" : "the server cannot write to its disk";
}

/// Such a reason names the journal's file.
inline command_answer journal_failed(const std::string& why) {
  return {.error = why, .fault = command_fault::failed, .error_outside = "the server cannot write to its journal"};
}

/// Turns what `run` returns (JSON) or throws into the answer to a command.
template <class Run>
command_answer answer_of(const Run& run) {
  try {
    return {run()};
  } catch (const unknown_error& error) {
    return {.error = error.what(), .fault = command_fault::unknown};
  } catch (const full_error& error) {
    return {.error = error.what(), .fault = command_fault::full};
  } catch (const foreign_error& error) {
    return {.error = error.what(), .fault = command_fault::foreign};
  } catch (const field_error& error) {
    return {.error = error.what(), .fault = command_fault::bad_input, .field = error.field()};
  } catch (const input_error& error) {
    return {.error = error.what(), .fault = command_fault::bad_input};
  } catch (const write_failure& failure) {
    return {.error = failure.what(), .fault = command_fault::failed, .error_outside = without_path(failure)};
  } catch (const journal_failure& failure) {
    return journal_failed(failure.what());
  } catch (const std::exception& error) {
    return {.error = error.what(), .fault = command_fault::failed};
  }
}

/// What `work` throws, as the answer to a command; nothing if it does not throw.
template <class Work>
std::optional<command_answer> refusal_of(const Work& work) {
  command_answer answer = answer_of([&] {
    work();
    return std::string();
  });
  return answer.is_refused() ? std::optional(std::move(answer)) : std::nullopt;
}

/// Throws what a catalogue or a journal has refused: unknown_error if what was named is not there.
template <class Error>
[[noreturn]] void refuse_by(const Error& error) {
  if (error.why == Error::reason::unknown) throw unknown_error(error.text);
  if constexpr (requires { Error::reason::full; })
    if (error.why == Error::reason::full) throw full_error(error.text);
  throw input_error(error.text);
}

template <class Value, class Error>
Value value_of(const result<Value, Error>& from) {
  if (!from) refuse_by(from.error());
  return *from;
}

}  // namespace troupe
