#include <ctime>

#include "actors/http/answers/answer_text.hpp"
#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/chats/chat_order.hpp"
#include "actors/http/json_text.hpp"
#include "base/ascii.hpp"
#include "base/random_hex.hpp"

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

class chat_completion_format final : public answer_format {
 public:
  chat_completion_format(std::shared_ptr<const prompting> prompts, const answer_order& order,
                         const thought_reader& thoughts, const tool_call_reader& reader)
      : prompts_(std::move(prompts)),
        model_(order.model),
        has_logprobs_(order.sampling.logprobs.has_value()),
        prompt_logprobs_(order.prompt_logprobs),
        frame_end_(frame_end(order)),
        thoughts_(static_cast<std::size_t>(order.n), thoughts),
        readers_(static_cast<std::size_t>(order.n), reader),
        sent_calls_(readers_.size()) {
    const auto head = [&, id = random_hex(24), now = std::time(nullptr)](const char* object) {
      return fmt::format(R"({{"id":"chatcmpl-{}","object":"{}","created":{},"model":{})", id, object, now,
                         json_text(model_));
    };
    chunk_head_ = head("chat.completion.chunk");
    whole_head_ = head("chat.completion");
  }

  void follow(std::string_view prompt_end, std::int64_t /*prompt_tokens*/) override {
    for (thought_reader& each : thoughts_) each.follow(prompt_end);
  }
  void begin(std::string& to, std::size_t index, const std::string& adapter) override {
    if (index == 0) chunk_head_ += before_choices(model_, adapter);
    frame(to, index, R"({"role":"assistant","content":""})", "null", "null");
  }
  void part(std::string& to, std::size_t index, const answer_part& part) override {
    tool_call_reader& reader = readers_[index];
    const thought_reader::said said = read_thoughts(index, part.text, part.end.has_value());
    std::string text = reader.push(said.answer);
    if (part.end) text += reader.finish(part.end->finish == "length");
    const auto calls = reader.take_calls();
    const bool has_more = has_logprobs_ && !part.details.empty();
    std::string logprobs = has_more ? logprobs_json(prompts_->tokens(), part.details) : "null";
    if (!said.thought.empty())
      frame(to, index, fmt::format(R"({{"reasoning_content":{}}})", json_text(said.thought)),
            std::exchange(logprobs, "null"), "null");
    if (!text.empty() || logprobs != "null")
      frame(to, index, fmt::format(R"({{"content":{}}})", json_text(text)), logprobs, "null");
    for (const tool_call& call : calls)
      frame(to, index, R"({"tool_calls":[)" + call_json(call, sent_calls_[index]++) + "]}", "null", "null");
    if (part.end) frame(to, index, "{}", "null", finish_json(finish_of(index, part.end->finish), part.end->stopped_by));
  }
  void usage(std::string& to, const answer_usage& usage) override { to += usage_frame(chunk_head_, usage); }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    std::string text = whole_head_ + before_choices(model_, choices.front().adapter);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (i > 0) text += ',';
      const std::string said = message(i, choices[i]);  // also finds the calls that the finish reason depends on
      text += fmt::format(R"({{"index":{},"message":{},"logprobs":{},"finish_reason":{}}})", i, said,
                          has_logprobs_ ? logprobs_json(prompts_->tokens(), choices[i].details) : "null",
                          finish_json(finish_of(i, choices[i].finish), choices[i].stopped_by));
    }
    text += R"(],"usage":)" + usage_json(usage);
    if (prompt_logprobs_)
      text += R"(,"prompt_logprobs":)" +
              prompt_logprobs_json(prompts_->tokens(), choices.front().scored, *prompt_logprobs_);
    return text + "}";
  }

 private:
  thought_reader::said read_thoughts(std::size_t index, std::string_view text, bool is_end) {
    thought_reader::said said = thoughts_[index].push(text);
    if (!is_end) return said;
    const thought_reader::said last = thoughts_[index].finish();
    return {said.thought + last.thought, said.answer + last.answer};
  }
  std::string message(std::size_t index, const answer_choice& choice) {
    tool_call_reader& reader = readers_[index];
    const thought_reader::said said = read_thoughts(index, choice.text, true);
    std::string text = reader.push(said.answer);
    text += reader.finish(choice.finish == "length");
    const auto calls = reader.take_calls();
    const bool only_calls = !calls.empty() && is_blank(text);
    std::string list;
    for (const tool_call& call : calls) list += (list.empty() ? "" : ",") + call_json(call, std::nullopt);
    return fmt::format(R"({{"role":"assistant","content":{},"refusal":null{}{}}})",
                       only_calls ? "null" : json_text(text),
                       said.thought.empty() ? "" : R"(,"reasoning_content":)" + json_text(said.thought),
                       list.empty() ? "" : fmt::format(R"(,"tool_calls":[{}])", list));
  }
  std::string finish_of(std::size_t index, const std::string& finish) const {
    return readers_[index].has_calls() && finish == "stop" ? "tool_calls" : finish;
  }
  void frame(std::string& to, std::size_t index, std::string_view delta, std::string_view logprobs,
             std::string_view finish) const {
    to += "data: ";
    to += chunk_head_;
    fmt::format_to(std::back_inserter(to), R"({{"index":{},"delta":{},"logprobs":{},"finish_reason":{}}})", index,
                   delta, logprobs, finish);
    to += frame_end_;
  }

  std::shared_ptr<const prompting> prompts_;
  std::string model_;
  bool has_logprobs_;
  std::optional<std::int32_t> prompt_logprobs_;  ///< how many the response has
  std::string_view frame_end_;
  std::string chunk_head_, whole_head_;
  std::vector<thought_reader> thoughts_;
  std::vector<tool_call_reader> readers_;
  std::vector<std::size_t> sent_calls_;  ///< how many, of each choice
};

}  // namespace

asked_answer read_chat_completion(const request_fields& from, const served_model& served) {
  chat_order asked = read_chat_order(from, served);
  auto format = std::make_unique<chat_completion_format>(served.prompts, asked.order, asked.thoughts, asked.calls);
  return {std::move(asked.order), std::move(format)};
}

}  // namespace troupe
