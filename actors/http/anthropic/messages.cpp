// POST /v1/messages: a chat in Anthropic's form.
#include "actors/http/anthropic/messages.hpp"

#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/anthropic/message_errors.hpp"
#include "actors/http/anthropic/message_input_impl.hpp"
#include "actors/http/chats/reply_reader.hpp"
#include "actors/http/json_text.hpp"
#include "base/entropy.hpp"

namespace troupe {
namespace {

/// As there, what came from the cache is not among the input tokens. Writing to the cache costs clients nothing.
std::string message_usage(const answer_usage& usage) {
  return fmt::format(
      R"({{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},"output_tokens":{}}})",
      usage.prompt_tokens - usage.cached_tokens, usage.cached_tokens, usage.completion_tokens);
}

/// The call's arguments if they are an object, else an empty one: clients expect no other thing.
std::string input_of(const tool_call& call) {
  return call.arguments.starts_with('{') && json::accept(call.arguments) ? call.arguments : "{}";
}

/// What a stream tells of the input; of a call that was cut, its beginning.
std::string streamed_input_of(const tool_call& call) {
  return call.is_cut && call.arguments.starts_with('{') ? call.arguments : input_of(call);
}

/// `input`: a JSON object.
std::string tool_block(const tool_call& call, std::string_view input) {
  return fmt::format(R"({{"type":"tool_use","id":"toolu_{}","name":{},"input":{}}})", random_hex(24),
                     json_text(call.name), input);
}

/// A thought's signature is Anthropic's proof that a model of theirs had it: here it is empty.
std::string thought_block(const std::string& thought) {
  return fmt::format(R"({{"type":"thinking","thinking":{},"signature":""}})", json_text(thought));
}

std::string text_block(const std::string& text) {
  return fmt::format(R"({{"type":"text","text":{}}})", json_text(text));
}

std::string block_of(const reply_piece& piece) {
  switch (piece.is) {
    case reply_piece::kind::thought:
      return thought_block(piece.text);
    case reply_piece::kind::call:
      return tool_block(piece.call, input_of(piece.call));
    default:
      return text_block(piece.text);
  }
}

class messages_format final : public answer_format {
 public:
  messages_format(const std::string& model, reply_reader reader)
      : head_(fmt::format(R"({{"id":"msg_{}","type":"message","role":"assistant","model":{})", random_hex(24),
                          json_text(model))),
        reader_(std::move(reader)) {}

  void follow(std::string_view prompt_end) override { reader_.follow(prompt_end); }
  void know_prompt(std::span<const token_id> prompt) override {
    prompt_tokens_ = static_cast<std::int64_t>(prompt.size());
  }
  void part(std::string& to, std::size_t /*index*/, const answer_part& part) override {
    if (!has_begun_) begin_message(to, part);
    add(to, reader_.push(part.text));
    if (!part.end) return;
    add(to, reader_.finish(would_have_gone_on(*part.end)));
    end_block(to);
    ending_ = ending_of(*part.end);
  }
  void usage(std::string& to, const answer_usage& usage) override {
    event(to, "message_delta", fmt::format(R"("delta":{{{}}},"usage":{})", ending_, message_usage(usage)));
    event(to, "message_stop", {});
  }
  std::string_view last_frame() const override { return {}; }
  std::string_view silent_frame() const override { return "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }
  void error(std::string& to, std::string_view error, std::string_view /*fields*/) override {
    fmt::format_to(std::back_inserter(to), "event: error\ndata: {}\n\n", message_error(error));
  }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    const answer_choice& choice = choices.front();
    std::string blocks;
    const bool is_cut = would_have_gone_on(choice.end);
    for (const reply_piece& each : reader_.read_whole(choice.text, is_cut))
      blocks += (blocks.empty() ? "" : ",") + block_of(each);
    return message(blocks, ending_of(choice.end), usage);
  }

 private:
  std::string message(std::string_view blocks, std::string_view ending, const answer_usage& usage) const {
    return fmt::format(R"({},"content":[{}],{},"usage":{}}})", head_, blocks, ending, message_usage(usage));
  }
  std::string ending_of(const answer_end& end) const {
    const bool is_stopped = end.finish == "stop" && end.stopped_by.text;
    const char* reason = end.finish == "length"        ? "max_tokens"
                         : reader_.waits_for_results() ? "tool_use"
                         : is_stopped                  ? "stop_sequence"
                                                       : "end_turn";
    return fmt::format(R"("stop_reason":"{}","stop_sequence":{})", reason,
                       is_stopped ? json_text(*end.stopped_by.text) : "null");
  }

  /// `fields`: those behind the type.
  static void event(std::string& to, std::string_view name, std::string_view fields) {
    fmt::format_to(std::back_inserter(to), "event: {0}\ndata: {{\"type\":\"{0}\"{1}{2}}}\n\n", name,
                   fields.empty() ? "" : ",", fields);
  }
  void begin_message(std::string& to, const answer_part& part) {
    has_begun_ = true;
    const answer_usage so_far{prompt_tokens_, 0, part.timing ? part.timing->cached_tokens : 0};
    event(to, "message_start", R"("message":)" + message({}, R"("stop_reason":null,"stop_sequence":null)", so_far));
  }

  void add(std::string& to, const std::vector<reply_piece>& pieces) {
    for (const reply_piece& each : pieces) {
      if (open_ != each.is || each.is == reply_piece::kind::call) begin_block(to, each);
      delta(to, each);
    }
  }
  void begin_block(std::string& to, const reply_piece& piece) {
    end_block(to);
    open_ = piece.is;
    const std::string block = piece.is == reply_piece::kind::call      ? tool_block(piece.call, "{}")
                              : piece.is == reply_piece::kind::thought ? thought_block({})
                                                                       : text_block({});
    event(to, "content_block_start", fmt::format(R"("index":{},"content_block":{})", blocks_, block));
  }
  void delta(std::string& to, const reply_piece& piece) {
    switch (piece.is) {
      case reply_piece::kind::thought:
        return delta(to, "thinking_delta", "thinking", piece.text);
      case reply_piece::kind::call:
        return delta(to, "input_json_delta", "partial_json", streamed_input_of(piece.call));
      default:
        return delta(to, "text_delta", "text", piece.text);
    }
  }
  void delta(std::string& to, std::string_view type, std::string_view key, std::string_view said) {
    event(to, "content_block_delta",
          fmt::format(R"("index":{},"delta":{{"type":"{}","{}":{}}})", blocks_, type, key, json_text(said)));
  }
  void end_block(std::string& to) {
    if (!open_) return;
    if (open_ == reply_piece::kind::thought) delta(to, "signature_delta", "signature", {});
    event(to, "content_block_stop", fmt::format(R"("index":{})", blocks_++));
    open_.reset();
  }

  std::string head_;  ///< the message's beginning, up to its content
  reply_reader reader_;
  std::int64_t prompt_tokens_ = 0;
  bool has_begun_ = false;
  std::optional<reply_piece::kind> open_;  ///< of the block that is being streamed
  std::size_t blocks_ = 0;                 ///< that are complete
  std::string ending_;
};

constexpr own_field fields_of_message[] = {{"response_format", "output_config"}, {"stop", "stop_sequences"}};

}  // namespace

chat_order read_message_order(const request_fields& from, const served_model& served) {
  const json chat = chat_of_message(from);
  return read_as_chat(request_fields(chat), served, fields_of_message);
}

asked_answer read_message(const request_fields& from, const served_model& served) {
  if (!from.has("max_tokens")) request_fields::refuse_missing("max_tokens");
  chat_order asked = read_message_order(from, served);
  asked.order.include_usage = asked.order.stream;  // the last events report it
  auto format = std::make_unique<messages_format>(asked.order.model, std::move(asked.reader));
  return {std::move(asked.order), std::move(format)};
}

}  // namespace troupe
