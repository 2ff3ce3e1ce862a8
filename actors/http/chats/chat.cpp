#include <algorithm>
#include <ctime>

#include "actors/http/answers/answer_text.hpp"
#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/chats/chat_order.hpp"
#include "actors/http/json_text.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "base/entropy.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

std::string logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& details) {
  return R"({"content":)" + token_logprobs_json(tokens, details) + R"(,"refusal":null})";
}

std::string call_json(const tool_call& call, std::optional<std::size_t> index) {
  return fmt::format(R"({{{}"id":"call_{}","type":"function","function":{{"name":{},"arguments":{}}}}})",
                     index ? fmt::format(R"("index":{},)", *index) : "", random_hex(24), json_text(call.name),
                     json_text(call.arguments));
}

/// Members of a message or a delta, under the name that vLLM gives them now and the one that it gave them before.
std::string thought_json(const std::string& thought) {
  const std::string text = json_text(thought);
  return fmt::format(R"("reasoning":{},"reasoning_content":{})", text, text);
}

class chat_completion_format final : public answer_format {
 public:
  chat_completion_format(std::shared_ptr<const prompting> prompts, const answer_order& order,
                         const reply_reader& reader, bool tells_thoughts)
      : prompts_(std::move(prompts)),
        model_(order.model),
        has_logprobs_(order.sampling.logprobs.has_value()),
        prompt_logprobs_(order.prompt_logprobs),
        tells_tokens_(order.token_ids),
        tells_thoughts_(tells_thoughts),
        frame_end_(frame_end(order)),
        readers_(to_size(order.n), reader),
        sent_calls_(readers_.size()) {
    const auto head = [&, id = random_hex(24), now = std::time(nullptr)](const char* object) {
      return fmt::format(R"({{"id":"chatcmpl-{}","object":"{}","created":{},"model":{})", id, object, now,
                         json_text(model_));
    };
    chunk_head_ = head("chat.completion.chunk");
    whole_head_ = head("chat.completion");
  }

  void follow(std::string_view prompt_end) override {
    for (reply_reader& each : readers_) each.follow(prompt_end);
  }
  void know_prompt(std::span<const token_id> prompt) override {
    if (tells_tokens_) prompt_told_ = R"(,"prompt_token_ids":)" + token_ids_json(prompt);
  }
  void begin(std::string& to, std::size_t index, const std::string& adapter) override {
    if (index == 0) chunk_head_ += before_choices(model_, adapter);
    frame(to, index, R"({"role":"assistant","content":""})", nothing_more, "null", index == 0 ? prompt_told_ : "");
  }
  void part(std::string& to, std::size_t index, const answer_part& part) override {
    std::string more = logprobs_of(has_logprobs_ && !part.details.empty(), part.details);
    const auto ending = part.end ? part.end->token : std::nullopt;
    if (!part.tokens.empty() || ending) more += token_fields(part.tokens, ending);
    add(to, index, readers_[index].push(part.text), more);
    if (part.end) add(to, index, readers_[index].finish(would_have_gone_on(*part.end)), more);
    if (more != nothing_more) frame(to, index, R"({"content":""})", more, "null");
    if (part.end)
      frame(to, index, "{}", nothing_more, finish_json(finish_of(index, part.end->finish), part.end->stopped_by));
  }
  void usage(std::string& to, const answer_usage& usage) override {
    to += usage_frame(chunk_head_, with_thoughts(usage));
  }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    std::string text = whole_head_ + before_choices(model_, choices.front().end.adapter);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (i > 0) text += ',';
      const std::string said = message(i, choices[i]);  // also finds the calls that the finish reason depends on
      text += fmt::format(
          R"({{"index":{},"message":{},{},"finish_reason":{}}})", i, said,
          logprobs_of(has_logprobs_, choices[i].details) + token_fields(choices[i].tokens, choices[i].end.token),
          finish_json(finish_of(i, choices[i].end.finish), choices[i].end.stopped_by));
    }
    text += R"(],"usage":)" + usage_json(with_thoughts(usage)) + prompt_told_;
    if (prompt_logprobs_)
      text += R"(,"prompt_logprobs":)" +
              prompt_logprobs_json(prompts_->tokens(), choices.front().scored, *prompt_logprobs_);
    return text + "}";
  }

 private:
  /// A text may have been written in fewer tokens than it has by itself.
  answer_usage with_thoughts(answer_usage usage) const {
    for (const reply_reader& each : readers_) usage.thought_tokens += token_count(prompts_->tokens(), each.thought());
    usage.thought_tokens = std::min(usage.thought_tokens, usage.completion_tokens);
    return usage;
  }
  std::vector<reply_piece> told(std::vector<reply_piece> pieces) const {
    const auto is_hidden = [&](const auto& each) { return each.is == reply_piece::kind::thought && !tells_thoughts_; };
    std::erase_if(pieces, is_hidden);
    return pieces;
  }
  /// `more` goes with the first of the pieces that are told.
  void add(std::string& to, std::size_t index, std::vector<reply_piece> pieces, std::string& more) {
    for (const reply_piece& each : told(std::move(pieces)))
      frame(to, index, delta_of(index, each), std::exchange(more, nothing_more), "null");
  }
  std::string delta_of(std::size_t index, const reply_piece& piece) {
    switch (piece.is) {
      case reply_piece::kind::thought:
        return fmt::format("{{{}}}", thought_json(piece.text));
      case reply_piece::kind::call:
        return fmt::format(R"({{"tool_calls":[{}]}})", call_json(piece.call, sent_calls_[index]++));
      default:
        return fmt::format(R"({{"content":{}}})", json_text(piece.text));
    }
  }
  std::string message(std::size_t index, const answer_choice& choice) {
    std::string thought, text, calls;
    const bool is_cut = would_have_gone_on(choice.end);
    for (const reply_piece& each : told(readers_[index].read_whole(choice.text, is_cut)))
      if (each.is == reply_piece::kind::call)
        calls += (calls.empty() ? "" : ",") + call_json(each.call, std::nullopt);
      else
        (each.is == reply_piece::kind::thought ? thought : text) += each.text;
    const bool only_calls = !calls.empty() && text.empty();
    return fmt::format(R"({{"role":"assistant","content":{},"refusal":null{}{}}})",
                       only_calls ? "null" : json_text(text), thought.empty() ? "" : "," + thought_json(thought),
                       calls.empty() ? "" : fmt::format(R"(,"tool_calls":[{}])", calls));
  }
  std::string finish_of(std::size_t index, const std::string& finish) const {
    return readers_[index].waits_for_results() && finish == "stop" ? "tool_calls" : finish;
  }
  std::string logprobs_of(bool are_there, const std::vector<sampled_token>& details) const {
    return are_there ? R"("logprobs":)" + logprobs_json(prompts_->tokens(), details) : std::string(nothing_more);
  }
  std::string token_fields(const std::vector<token_id>& tokens, const std::optional<sampled_token>& ending) const {
    return tells_tokens_ ? R"(,"token_ids":)" + token_ids_json(tokens, ending) : "";
  }
  /// `more`: fields of the choice, `nothing_more` at least. `behind`: fields behind the choices.
  void frame(std::string& to, std::size_t index, std::string_view delta, std::string_view more, std::string_view finish,
             std::string_view behind = {}) const {
    to += "data: ";
    to += chunk_head_;
    fmt::format_to(std::back_inserter(to), R"({{"index":{},"delta":{},{},"finish_reason":{}}}])", index, delta, more,
                   finish);
    to += behind;
    to += frame_end_.substr(1);
  }

  static constexpr std::string_view nothing_more = R"("logprobs":null)";

  std::shared_ptr<const prompting> prompts_;
  std::string model_;
  bool has_logprobs_;
  std::optional<std::int32_t> prompt_logprobs_;  ///< how many the response has
  bool tells_tokens_, tells_thoughts_;
  std::string_view frame_end_;
  std::string prompt_told_;  ///< the field with its tokens, if they are to be told
  std::string chunk_head_, whole_head_;
  std::vector<reply_reader> readers_;
  std::vector<std::size_t> sent_calls_;  ///< how many, of each choice
};

}  // namespace

asked_answer read_chat_completion(const request_fields& from, const served_model& served) {
  chat_order asked = read_chat_order(from, served);
  const bool tells_thoughts = from.boolean("include_reasoning").value_or(true);
  auto format = std::make_unique<chat_completion_format>(served.prompts, asked.order, asked.reader, tells_thoughts);
  return {std::move(asked.order), std::move(format)};
}

}  // namespace troupe
