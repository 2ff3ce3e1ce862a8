// The whole HTTP interface with nothing behind it but a gateway that answers at once. An input is either the body of
// one of the routes (its first byte says which), a batch's file, or all that a client sends: whatever it is, the server
// must close the connection or answer, in time, and live on.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "actors/http/http_front.hpp"
#include "actors/http/jobs/batch_lines.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/random/random_model.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "tests/base/loopback.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds longest_answer{8000};
constexpr std::string_view upload = "POST /v1/files";
constexpr std::array routes = std::to_array<std::string_view>(
    {"POST /v1/completions", "POST /v1/chat/completions", "POST /tokenize", "POST /detokenize", "POST /v1/embeddings",
     "POST /v1/batches", upload, "POST /v1/load_lora_adapter", "POST /v1/messages", "POST /v1/messages/count_tokens",
     "POST /v1/responses", "POST /v1/responses/input_tokens", "POST /generate", "POST /generate_stream"});

class instant_gateway {
 public:
  using handle = gateway_actor;
  static constexpr const char* name = "instant_gateway";

  instant_gateway(handle::pointer, std::string says) : says_(std::move(says)) {}
  handle::behavior_type make_behavior() {
    return {[](token_batch&) {},
            [](const request_refused&) {},
            [this](begin_request& request) { answer(request); },
            [](const end_request&) {},
            [](const adapter_found&) {},
            [](wake) {},
            [](stop_now) {}};
  }

 private:
  void answer(const begin_request& request) const {
    for (std::int32_t i = 0; i < request.engine.sequence.answers; ++i) {
      answer_part part;
      part.index = i;
      part.tokens = {65};
      part.text = says_;
      if (request.engine.sampling.logprobs) part.details = {{65, -0.5f, {}}};
      if (i == 0 && request.engine.sampling.prompt_logprobs)
        for (const token_id token : request.engine.sequence.prompt) part.scored.push_back({token, -0.5f, {}, 1});
      part.end = answer_end{"stop", static_cast<std::int64_t>(request.engine.sequence.prompt.size()), {}};
      request.listener->on_part(std::move(part));
    }
  }

  std::string says_;
};

/// Made once, for all inputs.
class served {
 public:
  served() {
    bench::write_random_model("tiny", folder_ / "model");
    std::ofstream(folder_ / "model" / "chat_template.jinja") << "{% for m in messages %}{{ m.content }}{% endfor %}";
    system_ = std::make_unique<caf::actor_system>(config_);
    http_parts parts;
    parts.gateway = spawn_state<instant_gateway>(*system_, std::string("A"));
    served_.prompts = std::make_shared<const prompting>(folder_ / "model", read_hf_config(folder_ / "model"), 0);
    served_.adapters = std::make_shared<adapter_directory>();
    served_.model = "tiny";
    parts.served = served_;
    parts.numbers = std::make_shared<request_numbers>();
    parts.board = std::make_shared<status_board>();
    parts.state_dir = folder_ / "state";
    parts.records = std::make_shared<job_records>(folder_ / "state" / "files");
    front_ =
        std::make_unique<http_front>(http_options{.header_time = std::chrono::milliseconds(1000)}, std::move(parts));
  }
  std::uint16_t port() const { return front_->port(); }
  /// A batch's, which would take two requests.
  void read_lines(std::string_view file) const {
    try {
      job_lines_of(file, "/v1/chat/completions", served_);
    } catch (const input_error&) {
    }
  }
  /// What was uploaded would fill the disk.
  void forget_files() const {
    std::error_code ignored;
    for (const auto& each : fs::directory_iterator(folder_ / "state" / "files", ignored)) fs::remove_all(each, ignored);
  }

 private:
  const test::temp_folder own_;
  const fs::path folder_ = own_.path();
  caf::actor_system_config config_ = system_config(1);
  std::unique_ptr<caf::actor_system> system_;
  served_model served_;
  std::unique_ptr<http_front> front_;
};

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "fuzz_http: %s\n", why);
  std::abort();
}

std::string request_of(std::string_view input) {
  if (input.empty()) return {};
  const auto which = static_cast<unsigned char>(input.front());
  if (which >= routes.size()) return std::string(input);
  const std::string_view body = input.substr(1);
  const std::string_view type = routes[which] == upload ? "multipart/form-data; boundary=b" : "application/json";
  return fmt::format("{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {}\r\ncontent-length: {}\r\n\r\n{}",
                     routes[which], type, body.size(), body);
}

/// libFuzzer's alarm interrupts a wait; that is not the server's silence.
bool can_be_read_in_time(int from) {
  const auto until = std::chrono::steady_clock::now() + longest_answer;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready{from, POLLIN, 0};
    const int found = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

/// Everything that the server says until it closes.
std::string exchange(std::uint16_t port, std::string_view request) {
  const file_descriptor made = test::connected_to(port);
  if (!made.is_open()) fail("nobody listens any more");
  while (!request.empty()) {
    const ssize_t sent = ::send(made.number(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // it closed already: that is an answer too
    request.remove_prefix(to_size(sent));
  }
  ::shutdown(made.number(), SHUT_WR);
  std::string answer;
  for (std::array<char, 4096> piece; answer.size() < (16u << 20);) {
    if (!can_be_read_in_time(made.number())) fail("no answer in time");
    const ssize_t got = ::recv(made.number(), piece.data(), piece.size(), 0);
    if (got <= 0) break;
    answer.append(piece.data(), to_size(got));
  }
  return answer;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const server = new troupe::served;  // lives as long as the process: its threads are never joined
  static int runs = 0;
  if (++runs % 256 == 0) server->forget_files();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with(static_cast<char>(troupe::routes.size()))) return server->read_lines(input.substr(1)), 0;
  const std::string answer = troupe::exchange(server->port(), troupe::request_of(input));
  if (!answer.empty() && !answer.starts_with("HTTP/1.1 ") && !answer.starts_with("HTTP/1.0 "))
    troupe::fail("an answer that is no HTTP");
  return 0;
}
