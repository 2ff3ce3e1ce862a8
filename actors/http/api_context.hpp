#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "actors/http/api_keys.hpp"
#include "actors/http/file_store.hpp"
#include "actors/http/http_metrics.hpp"
#include "actors/http/served_model.hpp"
#include "actors/interfaces.hpp"
#include "actors/long_work.hpp"
#include "actors/status_board.hpp"
#include "transport/http/http_exchange.hpp"

namespace troupe {

/// What the HTTP interface is made of; all of it outlives the server.
struct http_parts : served_model {
  gateway_actor gateway;
  adapter_store_actor store;
  jobs_actor jobs;
  training_desk_actor training;
  std::shared_ptr<request_numbers> numbers;
  std::shared_ptr<status_board> board;
  std::filesystem::path state_dir;                                  ///< of the cluster: keys and files are there
  std::function<void(const std::string&)> log{};                    ///< a line for each request
  bool log_bodies = false;                                          ///< in these lines; else never a prompt's text
  std::shared_ptr<long_work> work = std::make_shared<long_work>();  ///< stopped with the server
  /// For files and batches, as large as they are: no answer waits behind them. Stopped with the server, too.
  std::shared_ptr<long_work> file_work = std::make_shared<long_work>();
};

/// Shared by all routes. Thread-safe.
struct api_context {
  explicit api_context(http_parts from);

  http_parts parts;
  api_key_ring keys;
  monotonic_clock time;
  key_limits limits{time};
  http_metrics metrics;
  file_store files;
  std::int64_t created;           ///< of the models, as far as clients are told: the start
  bool is_this_machines = false;  ///< nobody else's can reach the address

  /// Some replica runs.
  bool is_ready() const;
};

/// One request on its way. Copies are cheap and share the body, which may be large.
struct api_call {
  std::shared_ptr<api_context> context;
  std::shared_ptr<const http_request> request;
  api_key key;  ///< that it came with: one without a name where there are no keys
  std::shared_ptr<http_exchange> exchange;

  /// What stands for {…} in the route's path.
  const std::string& place() const { return request->places[0]; }
};

using command_actor = actor_of<command_call>;

/// `then` is called on some thread, with what the command returned. Where it was refused, `refused` is called, and
/// `exchange` answered with the error.
void run_command(const command_actor& whom, client_command what, const std::shared_ptr<http_exchange>& exchange,
                 std::function<void(const std::string& result)> then, std::function<void()> refused = {});

/// Runs `handle`; what it throws becomes the response.
void guarded(const std::shared_ptr<http_exchange>& exchange, const std::function<void()>& handle);
/// The same, later, on a thread for long work.
void guarded_later(long_work& thread, const std::shared_ptr<http_exchange>& exchange, std::function<void()> handle);

std::string random_hex(int digits);

}  // namespace troupe
