#include "cli/bench/serve_load.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/timing.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

using bench::served_request;
using stream_json = nlohmann::ordered_json;

void read_count(const stream_json& from, const char* key, std::int64_t& to) {
  if (const auto found = from.find(key); found != from.end() && found->is_number_integer())
    to = found->get<std::int64_t>();
}

/// Of a chunk that is a piece of the answer.
bool has_text(const stream_json& chunk) {
  const auto& first = chunk["choices"].front();
  const auto text = first.is_object() ? first.find("text") : first.end();
  return text != first.end() && text->is_string() && *text != "";
}

/// Takes what a chunk says of the answer as a whole. True if the chunk is a piece of it.
bool read_chunk(const stream_json& chunk, served_request& result) {
  if (const auto error = chunk.find("error"); error != chunk.end() && !error->is_null())
    result.error = json_line(*error);
  if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) {
    read_count(*usage, "prompt_tokens", result.prompt_tokens);
    read_count(*usage, "completion_tokens", result.answer_tokens);
  }
  const auto choices = chunk.find("choices");
  return choices != chunk.end() && choices->is_array() && !choices->empty();
}

}  // namespace

serve_load::serve_load(http_url server, http_headers headers, std::vector<load_request> requests, std::size_t clients)
    : client_(std::move(server)), headers_(std::move(headers)), requests_(std::move(requests)), clients_(clients) {
  results_.reserve(requests_.size());
}

std::vector<served_request> serve_load::run() {
  began_ = bench::now();
  if (clients_ > 0)
    while (next_ < std::min(clients_, requests_.size())) send(next_++);
  else
    for (std::size_t i = 0; i < requests_.size(); ++i) client_.after(requests_[i].at, [this, i] { send(i); });
  watch_for_interrupts();
  client_.run();
  for (served_request* const each : under_way_) each->error = "interrupted";
  return std::move(results_);
}

void serve_load::watch_for_interrupts() {
  client_.after(0.1, [this] {
    if (is_interrupted())
      client_.stop();
    else
      watch_for_interrupts();
  });
}

double serve_load::seconds() const {
  return bench::now() - began_;
}

void serve_load::send(std::size_t index) {
  const load_request& request = requests_[index];
  served_request& result = results_.emplace_back();
  under_way_.insert(&result);
  const auto stream = std::make_shared<answer_stream>();
  result.prompt_tokens = request.prompt_tokens;
  result.sent = seconds();
  client_.send("POST", "/v1/completions", headers_, request.body,
               {[stream](int status, const http_headers&) { stream->status = status; },
                [this, &result, stream](std::string_view piece) { take(result, *stream, piece); },
                [this, &result, stream](const std::string& error) { end(result, *stream, error); }});
}

void serve_load::take(served_request& result, answer_stream& stream, std::string_view piece) const {
  if (stream.status != 200) {
    if (stream.refusal.size() < 1000) stream.refusal += piece;
    return;
  }
  stream.unread += piece;
  std::size_t from = 0;
  for (std::size_t end; (end = stream.unread.find('\n', from)) != stream.unread.npos; from = end + 1)
    take_line(result, stream, std::string_view(stream.unread).substr(from, end - from));
  stream.unread.erase(0, from);
}

/// Some servers end lines with CR LF. A chunk is one line of data at all of them.
void serve_load::take_line(served_request& result, answer_stream& stream, std::string_view line) const {
  constexpr std::string_view data = "data:";
  if (!line.starts_with(data)) return;
  line.remove_prefix(data.size());
  const stream_json chunk = stream_json::parse(line, nullptr, false);
  if (chunk.is_object()) {
    if (!read_chunk(chunk, result)) return;
    note_piece(result);
    if (has_text(chunk)) ++stream.pieces;
  } else if (line.find("[DONE]") != line.npos) {
    stream.done = true;
  } else {
    result.error = fmt::format("a chunk is no JSON object: {}", line);
  }
}

void serve_load::note_piece(served_request& result) const {
  const double now = seconds();
  if (result.first == 0)
    result.first = now;
  else
    result.gaps.push_back(now - result.last);
  result.last = now;
}

void serve_load::end(served_request& result, const answer_stream& stream, const std::string& error) {
  if (!error.empty()) result.error = error;
  if (stream.status != 200 && result.error.empty()) result.error = fmt::format("{}: {}", stream.status, stream.refusal);
  if (result.error.empty() && (!stream.done || result.first == 0)) result.error = "the stream ended early";
  result.error = one_line(result.error.substr(0, 300));  // it may be the server's, and goes to a terminal
  if (result.answer_tokens == 0) result.answer_tokens = stream.pieces;
  under_way_.erase(&result);
  if (++ended_ == requests_.size()) client_.stop();  // it would wait for the next look at interrupts
  if (clients_ > 0 && next_ < requests_.size()) send(next_++);
}

}  // namespace troupe
