// POST /v1/responses: a chat in OpenAI's newer form. Nothing is stored: each request brings all of its input.
#include "actors/http/chats/responses.hpp"

#include <algorithm>
#include <ctime>

#include "actors/http/answers/answer_text.hpp"
#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/chats/reply_reader.hpp"
#include "actors/http/chats/response_input_impl.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/metadata_impl.hpp"
#include "base/entropy.hpp"

namespace troupe {
namespace {

/// The fields of the request that the response repeats: `"name":value,` for each.
std::string repeated_fields(const request_fields& from, const answer_order& order) {
  json all{{"model", order.model},
           {"instructions", nullptr},
           {"max_output_tokens", nullptr},
           {"metadata", json::object()},
           {"parallel_tool_calls", true},
           {"reasoning", nullptr},
           {"text", {{"format", {{"type", "text"}}}}},
           {"tool_choice", "auto"},
           {"tools", json::array()}};
  for (const char* key :
       {"instructions", "max_output_tokens", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools"})
    if (const json* given = from.find(key)) all[key] = *given;
  keep_metadata(all, from);
  if (const auto user = from.text("user")) all["user"] = *user;
  if (all["text"].value("format", json()).is_null()) all["text"]["format"] = {{"type", "text"}};
  for (json& tool : all["tools"]) {
    if (!tool.contains("strict")) tool["strict"] = false;
    if (!tool.contains("parameters")) tool["parameters"] = nullptr;
  }
  all["temperature"] = order.sampling.temperature;
  all["top_p"] = from.number("top_p").value_or(order.sampling.top_p);  // 0 is read as no nucleus
  all["top_logprobs"] = order.sampling.logprobs.value_or(0);
  all.update({{"previous_response_id", nullptr},
              {"background", false},
              {"store", false},
              {"truncation", truncation_of(from)}});
  const std::string text = dump(all);
  return text.substr(1, text.size() - 2) + ',';
}

/// Writing to the prefix cache costs clients nothing: that count is always 0.
std::string response_usage(const answer_usage& usage) {
  return fmt::format(R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{},"cache_write_tokens":0}},)"
                     R"("output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
                     usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.thought_tokens,
                     usage.prompt_tokens + usage.completion_tokens);
}

/// Items come one after the other: a thought, messages and calls. Each has events when it begins, goes on and is done.
class responses_format final : public answer_format {
 public:
  responses_format(std::shared_ptr<const prompting> prompts, const answer_order& order, const std::string& repeated,
                   reply_reader reader)
      : prompts_(std::move(prompts)),
        reader_(std::move(reader)),
        decoder_(prompts_->tokens(), order.skip_special, false),
        head_(fmt::format(R"({{"id":"resp_{}","object":"response","created_at":{},{}"error":null,)", random_hex(48),
                          std::time(nullptr), repeated)),
        has_logprobs_(order.sampling.logprobs.has_value()) {}

  void follow(std::string_view prompt_end) override { reader_.follow(prompt_end); }
  void begin(std::string& to, std::size_t /*index*/, const std::string& /*adapter*/) override {
    for (const char* name : {"response.created", "response.in_progress"})
      event(to, name, R"("response":)" + response("in_progress", nullptr));
  }
  void part(std::string& to, std::size_t /*index*/, const answer_part& part) override {
    add_tokens(to, part.text, part.details);
    if (!part.end) return;
    is_cut_ = part.end->finish == "length";
    add(to, reader_.finish(would_have_gone_on(*part.end)));
    if (items_.empty() && !open_) add_text(to, false, {});
    end_item(to, is_cut_ ? "incomplete" : "completed");
  }
  void usage(std::string& to, const answer_usage& usage) override {
    event(to, is_cut_ ? "response.incomplete" : "response.completed", R"("response":)" + ended(usage));
  }
  std::string_view last_frame() const override { return {}; }
  void error(std::string& to, std::string_view /*error*/, std::string_view fields) override {
    event(to, "error", fields);
  }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    const answer_choice& choice = choices.front();
    std::string unsent;
    part(unsent, 0, {.text = choice.text, .details = choice.details, .end = choice.end});
    return ended(usage);
  }

 private:
  /// A thought or a message that goes on.
  struct open_item {
    bool is_thought;
    std::string id, text;
    std::vector<sampled_token> details;
  };

  void event(std::string& to, std::string_view name, std::string_view fields) {
    fmt::format_to(std::back_inserter(to), "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2}}}\n\n",
                   name, sequence_number_++, fields);
  }
  std::string response(std::string_view status, const answer_usage* usage) const {
    return fmt::format(R"({}"status":"{}","incomplete_details":{},"output":[{}]{}}})", head_, status,
                       status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null", items_,
                       usage ? R"(,"usage":)" + response_usage(*usage) : "");
  }
  std::string ended(answer_usage usage) const {
    usage.thought_tokens = std::min(token_count(prompts_->tokens(), reader_.thought()), usage.completion_tokens);
    return response(is_cut_ ? "incomplete" : "completed", &usage);
  }

  /// Token by token if they have details, so that each belongs to its own text. That of earlier ones may come late.
  void add_tokens(std::string& to, std::string_view text, const std::vector<sampled_token>& details) {
    const auto add_bytes = [&](std::size_t count) {
      const std::string_view said = text.substr(0, count);
      add(to, reader_.push(said));
      text.remove_prefix(said.size());
      return count - said.size();
    };
    late_bytes_ = add_bytes(late_bytes_);
    for (const sampled_token& each : details) {
      waiting_details_.push_back(each);
      late_bytes_ += add_bytes(decoder_.push(each.token).size());
    }
    add(to, reader_.push(text));
  }
  void add(std::string& to, const std::vector<reply_piece>& pieces) {
    for (const reply_piece& each : pieces)
      if (each.is == reply_piece::kind::call)
        add_call(to, each.call);
      else
        add_text(to, each.is == reply_piece::kind::thought, each.text);
  }
  void add_text(std::string& to, bool is_thought, const std::string& text) {
    if (open_ && open_->is_thought != is_thought) end_item(to, "completed");
    if (!open_) {
      keep_details_of(text);
      begin_item(to, is_thought);
    }
    event(to, kind_of_text() + ".delta",
          fmt::format(R"({},"delta":{}{})", place(), json_text(text), logprobs_field(waiting_details_)));
    open_->text += text;
    open_->details.insert(open_->details.end(), waiting_details_.begin(), waiting_details_.end());
    waiting_details_.clear();
  }
  /// Tokens before a text, as those that end a thought, are none of its own: these are the last that have its bytes.
  void keep_details_of(std::string_view text) {
    auto first = waiting_details_.end();
    for (std::size_t bytes = 0; bytes < text.size() && first != waiting_details_.begin();)
      bytes += prompts_->tokens().bytes_of((--first)->token).size();
    waiting_details_.erase(waiting_details_.begin(), first);
  }
  void begin_item(std::string& to, bool is_thought) {
    open_ = open_item{is_thought, (is_thought ? "rs_" : "msg_") + random_hex(48), {}, {}};
    event(to, "response.output_item.added",
          fmt::format(R"("output_index":{},"item":{})", item_count_, item("in_progress", "")));
    event(to, "response.content_part.added", place() + R"(,"part":)" + text_part());
  }
  void end_item(std::string& to, std::string_view status) {
    if (!open_) return;
    event(to, kind_of_text() + ".done",
          fmt::format(R"({},"text":{}{})", place(), json_text(open_->text), logprobs_field(open_->details)));
    event(to, "response.content_part.done", place() + R"(,"part":)" + text_part());
    add_item(to, item(status, text_part()));
    open_.reset();
  }

  // Of the open item.
  std::string kind_of_text() const { return open_->is_thought ? "response.reasoning_text" : "response.output_text"; }
  std::string place() const {
    return fmt::format(R"("item_id":"{}","output_index":{},"content_index":0)", open_->id, item_count_);
  }
  std::string text_part() const {
    const std::string text = json_text(open_->text);
    if (open_->is_thought) return fmt::format(R"({{"type":"reasoning_text","text":{}}})", text);
    return fmt::format(R"({{"type":"output_text","text":{},"annotations":[]{}}})", text,
                       logprobs_field(open_->details));
  }
  std::string item(std::string_view status, std::string_view content) const {
    return fmt::format(R"({{"id":"{}","type":{},"status":"{}","content":[{}]}})", open_->id,
                       open_->is_thought ? R"("reasoning","summary":[])" : R"("message","role":"assistant")", status,
                       content);
  }
  /// Thoughts have none.
  std::string logprobs_field(const std::vector<sampled_token>& details) const {
    if (open_->is_thought) return {};
    return R"(,"logprobs":)" + (has_logprobs_ ? token_logprobs_json(prompts_->tokens(), details) : "[]");
  }

  void add_call(std::string& to, const tool_call& call) {
    end_item(to, "completed");
    waiting_details_.clear();  // they are the call's
    const std::string id = "fc_" + random_hex(48), name = json_text(call.name), arguments = json_text(call.arguments);
    const auto item = [&, call_id = random_hex(24)](std::string_view status, std::string_view said) {
      return fmt::format(
          R"({{"id":"{}","type":"function_call","status":"{}","call_id":"call_{}","name":{},"arguments":{}}})", id,
          status, call_id, name, said);
    };
    const std::string place = fmt::format(R"("item_id":"{}","output_index":{})", id, item_count_);
    event(to, "response.output_item.added",
          fmt::format(R"("output_index":{},"item":{})", item_count_, item("in_progress", R"("")")));
    event(to, "response.function_call_arguments.delta", fmt::format(R"({},"delta":{})", place, arguments));
    event(to, "response.function_call_arguments.done",
          fmt::format(R"({},"name":{},"arguments":{})", place, name, arguments));
    add_item(to, item(call.is_cut ? "incomplete" : "completed", arguments));
  }
  void add_item(std::string& to, const std::string& item) {
    event(to, "response.output_item.done", fmt::format(R"("output_index":{},"item":{})", item_count_, item));
    if (item_count_++ > 0) items_ += ',';
    items_ += item;
  }

  std::shared_ptr<const prompting> prompts_;
  reply_reader reader_;
  stream_decoder decoder_;
  std::string head_;  ///< the response's beginning, up to the first field that changes
  bool has_logprobs_, is_cut_ = false;
  std::vector<sampled_token> waiting_details_;  ///< of tokens whose text is not in an item yet
  std::size_t late_bytes_ = 0;                  ///< of the text of tokens that came before it
  std::optional<open_item> open_;
  std::string items_;  ///< finished items, as JSON
  std::size_t item_count_ = 0, sequence_number_ = 0;
};

constexpr own_field fields_of_response[] = {
    {"messages", "input"}, {"response_format", "text"}, {"max_completion_tokens", "max_output_tokens"}};

}  // namespace

chat_order read_response_order(const request_fields& from, const served_model& served) {
  const json chat = chat_of_response(from);
  return read_as_chat(request_fields(chat), served, fields_of_response);
}

asked_answer read_response(const request_fields& from, const served_model& served) {
  chat_order asked = read_response_order(from, served);
  asked.order.include_usage = asked.order.stream;  // the last event reports usage
  auto format = std::make_unique<responses_format>(served.prompts, asked.order, repeated_fields(from, asked.order),
                                                   std::move(asked.reader));
  return {std::move(asked.order), std::move(format)};
}

}  // namespace troupe
