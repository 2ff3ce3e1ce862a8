#include "actors/http/api_context.hpp"

#include <ctime>

#include "actors/command_answers.hpp"
#include "actors/http/api_error.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"

namespace troupe {
namespace {

int status_of(command_fault fault) {
  switch (fault) {
    case command_fault::bad_input:
      return 400;
    case command_fault::unknown:
      return 404;
    case command_fault::full:
      return 429;
    case command_fault::foreign:
      return 403;
    default:
      return 500;
  }
}

std::string field_at_fault(const command_answer& answer, const command_outcome& outcome) {
  if (answer.fault == command_fault::failed) return {};
  if (!answer.field.empty()) return answer.field;
  return answer.fault == command_fault::foreign ? outcome.foreign : outcome.field;
}

std::string told_of(const command_answer& answer, const command_outcome& outcome) {
  if (answer.fault == command_fault::unknown && !outcome.unknown.empty()) return outcome.unknown;
  return answer.error_outside.empty() ? answer.error : answer.error_outside;
}

}  // namespace

api_context::api_context(http_parts parts)
    : http_parts(std::move(parts)),
      keys(api_keys_file(state_dir), need_keys, log),
      files(state_dir / "files", file_bytes_per_key),
      created(std::time(nullptr)) {}

void run_command(const command_actor& to, client_command command, const std::shared_ptr<http_exchange>& exchange,
                 command_outcome outcome) {
  auto take = [exchange, outcome = std::move(outcome)](const command_answer& answer) {
    guarded(exchange, [&] {
      if (!answer.is_refused()) {
        if (outcome.done) outcome.done(answer.result);
        return;
      }
      if (outcome.refused) outcome.refused();
      if (!answer.error_outside.empty()) exchange->note(answer.error);
      throw api_error(status_of(answer.fault), told_of(answer, outcome), field_at_fault(answer, outcome));
    });
  };
  tell(to, command_call{std::move(command), std::move(take), [exchange] { return !exchange->is_gone(); }});
}

void guarded(const std::shared_ptr<http_exchange>& exchange, const std::function<void()>& handle) {
  try {
    handle();
  } catch (const api_error& error) {
    exchange->reply(error_response(error));
  } catch (const input_error& error) {
    exchange->reply(error_response(api_error_of(error)));
  } catch (const write_failure& failure) {
    exchange->note(failure.what());  // into the log alone
    exchange->reply(error_response(api_error(500, without_path(failure))));
  } catch (const std::exception& error) {
    exchange->reply(error_response(api_error(500, error.what())));
  }
}

void guarded_later(task_thread& thread, const std::string& key, const std::shared_ptr<http_exchange>& exchange,
                   std::function<void()> handle, std::size_t bytes) {
  auto work = [exchange, handle = std::move(handle)] {
    if (!exchange->is_gone()) guarded(exchange, handle);
  };
  if (!thread.offer(bytes, std::move(work), key)) throw unavailable("too many large requests at a time: try again");
}

}  // namespace troupe
