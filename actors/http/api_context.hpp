#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/http/access/api_keys.hpp"
#include "actors/http/files/file_store.hpp"
#include "actors/http/jobs/job_records.hpp"
#include "actors/http/served_model.hpp"
#include "actors/http/status/http_metrics.hpp"
#include "actors/http/stranger_lines.hpp"
#include "actors/interfaces.hpp"
#include "actors/status_board.hpp"
#include "actors/task_thread.hpp"
#include "transport/http/http_exchange.hpp"

namespace troupe {

/// What the HTTP interface uses; all of it outlives the server.
struct http_parts {
  served_model served;
  gateway_actor gateway;
  adapter_store_actor store;
  jobs_actor jobs;
  training_desk_actor training;
  std::shared_ptr<request_numbers> numbers;
  std::shared_ptr<status_board> board;
  std::shared_ptr<job_records> records;           ///< those that the journal's owner forgets jobs in
  std::filesystem::path state_dir;                ///< the cluster's folder with keys and files
  std::function<void(const std::string&)> log{};  ///< takes a line for each request
  bool log_bodies = false;                        ///< put bodies into these lines; otherwise no prompt's text is logged
  std::vector<std::string> origins{};             ///< of web pages from elsewhere that may ask, too
  bool need_keys = false;                         ///< also while there are none
  std::uint64_t file_bytes_per_key = UINT64_MAX;  ///< that the uploaded files of one may take
  std::shared_ptr<task_thread> work = std::make_shared<task_thread>();  ///< stopped together with the server
  /// For files and batches, which may be large, so that no answer waits behind them. Stopped together with the server.
  std::shared_ptr<task_thread> file_work = std::make_shared<task_thread>();
};

/// Shared by all routes. Thread-safe.
struct api_context : http_parts {
  explicit api_context(http_parts parts);

  api_key_ring keys;
  monotonic_clock time;
  key_limits limits{time};
  http_metrics metrics;
  std::shared_ptr<request_series> base_figures = metrics.series(served.model);  ///< held, so they are never forgotten
  stranger_lines lines_of_strangers{time};
  file_store files;
  std::int64_t created;           ///< when the base was made, for clients: the start of this process
  bool is_this_machines = false;  ///< only this machine can reach the address
};

/// One request. Copies are cheap: they share the body, which may be large.
struct api_call {
  std::shared_ptr<api_context> context;
  std::shared_ptr<const http_request> request = {};
  api_key key = {};  ///< of the request; without a name if there are no keys
  std::shared_ptr<http_exchange> exchange;
  instant came = {};  ///< when all of the request was there

  /// The part of the path that {…} stands for in the route.
  const std::string& path_part() const { return request->path_parts[0]; }
};

using command_actor = actor_of<command_call>;

/// What follows a command; both functions are called on some thread.
struct command_outcome {
  std::function<void(const std::string& result)> done = {};
  std::function<void()> refused = {};
  std::string field = {};    ///< of the request, that is at fault where the command is refused
  std::string unknown = {};  ///< what to say where what it names is not there; empty: what the command says
  std::string foreign = {};  ///< the field that names what is another's, where it is refused for that
};
/// If the command is refused, `exchange` is answered with the error.
void run_command(const command_actor& to, client_command command, const std::shared_ptr<http_exchange>& exchange,
                 command_outcome outcome);

/// Runs `handle`, and turns what it throws into the response.
void guarded(const std::shared_ptr<http_exchange>& exchange, const std::function<void()>& handle);
/// The same, but later on a thread for long work, when it is the key's turn; and not at all if the client has gone by
/// then. `key`: its name. `bytes`: what it holds meanwhile. Throws api_error if what waits holds too many already.
void guarded_later(task_thread& thread, const std::string& key, const std::shared_ptr<http_exchange>& exchange,
                   std::function<void()> handle, std::size_t bytes = 0);

}  // namespace troupe
