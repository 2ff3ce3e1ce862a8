#include "actors/http/chats/chat_order.hpp"

#include "actors/http/answers/order_fields.hpp"
#include "actors/http/chats/tool_choice.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "model/text/chat_messages.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_messages = 10'000;

/// An assistant's message that only refuses or thinks has no content, and clients send it back: it gets an empty text,
/// since messages need one.
void fill_empty_answers(json& messages) {
  for (json& message : messages) {
    if (!message.is_object()) continue;
    const auto content = message.find("content");
    const bool is_there = content != message.end();
    if (is_there && !content->is_null()) continue;
    const bool is_answer = message.contains("refusal") || (is_there && message.value("role", json()) == "assistant");
    if (is_answer && message.value("tool_calls", json()).empty()) message["content"] = "";
  }
}

json read_messages(json messages) {
  fill_empty_answers(messages);
  try {
    prepare_messages(messages);
  } catch (const input_error& error) {
    refuse_field("messages", error.what());
  }
  return messages;
}

std::optional<std::int32_t> logprobs_of(const request_fields& from) {
  const auto top = from.small("top_logprobs", 0, 20);
  if (!from.boolean("logprobs").value_or(false)) {
    if (top && *top > 0) refuse_field("top_logprobs", "top_logprobs needs logprobs = true");
    return std::nullopt;
  }
  return top.value_or(0);
}

/// An effort of thinking is one of them: gpt-oss's template writes it.
std::string template_variables_of(const request_fields& from) {
  const json* given = from.object("chat_template_kwargs");
  json all = given ? *given : json::object();
  if (const auto effort = from.text("reasoning_effort")) all.emplace("reasoning_effort", *effort);
  return all.empty() ? std::string() : dump(all);
}

/// The text that the answer goes on with; empty where it has its own beginning.
std::string continued_text(const chat_input& chat) {
  return chat.continues_message ? json::parse(chat.messages).back()["content"].get<std::string>() : std::string();
}

/// Gives the answer the form that its tools demand, if they do. Returns whether it must be a call.
bool take_form(tool_wishes& tools, answer_order& order) {
  const bool is_call{tools.form};
  if (is_call) {  // its text is a call, to which the form that was asked for texts does not apply
    order.sampling.constraint = std::move(tools.form);
    order.form_field = "tools";
  } else if (order.sampling.constraint) {
    order.sampling.constraint.call = std::move(tools.call);
  } else if (tools.strict) {
    order.sampling.constraint = std::move(tools.strict);
    order.form_field = "tools";
  }
  return is_call;
}

/// The beginning of a call that is demanded, which `calls` reads.
std::string begun_answer(const tool_wishes& tools, tool_call_reader& calls) {
  std::string begun = begun_call(tools.style, tools.called);
  (void)calls.push(begun);
  return begun;
}

}  // namespace

prompt_input read_chat(const request_fields& from) {
  const json* list = from.list("messages");
  if (!list || list->empty()) refuse_field("messages", "messages is missing or empty", "missing_required_parameter");
  if (list->size() > most_messages)
    refuse_field("messages", fmt::format("messages has {} entries: use at most {}", list->size(), most_messages));
  prompt_input input{.field = "messages"};
  chat_input& chat = input.chat.emplace();
  chat.messages = dump(read_messages(*list));
  if (const json* tools = from.list("tools"); tools && !tools->empty()) chat.tools = dump(*tools);
  chat.variables = template_variables_of(from);
  read_shortening(from, input);
  chat.continues_message = from.boolean("continue_final_message").value_or(false);
  chat.add_generation_prompt = from.boolean("add_generation_prompt").value_or(!chat.continues_message);
  if (chat.continues_message && chat.add_generation_prompt)
    refuse_field("continue_final_message", "continue_final_message does not go with add_generation_prompt: use one",
                 "unsupported_value");
  return input;
}

std::int64_t max_tokens_of(const request_fields& from) {
  if (const auto most = most_tokens_of(from, "max_completion_tokens", 1)) return *most;
  return most_tokens_of(from, "max_tokens", 1).value_or(INT32_MAX);
}

chat_order read_chat_order(const request_fields& from, const served_model& served) {
  if (from.boolean("echo").value_or(false))
    refuse_field("echo", "echo is served for completions alone: leave it out", "unsupported_parameter");
  answer_order order = read_order(from, served);
  order.sampling.max_tokens = max_tokens_of(from);
  order.sampling.logprobs = logprobs_of(from);
  const std::string& chat_template = served.prompts->tool_template();
  tool_wishes tools = read_tools(from, tool_style_of(chat_template));
  const bool is_call = take_form(tools, order);
  order.prompts.push_back(read_chat(from));
  // An answer that has a form begins with it.
  const bool has_form = order.sampling.constraint && order.sampling.constraint.kind != constraint_kind::calls;
  thought_reader thoughts(has_form ? std::string_view() : chat_template);
  if (const std::string text = continued_text(*order.prompts.back().chat); !text.empty()) thoughts.go_on_with(text);
  const bool may_call_by_special = notation_of(tools.style).may_be_special && !tools.offers.empty();
  if (shows_special(chat_template) || may_call_by_special) order.skip_special = false;
  auto offers = std::make_shared<const std::vector<tool_offer>>(std::move(tools.offers));
  tool_call_reader calls(tools.style, std::move(offers), tools.most_calls, is_call);
  if (!tools.called.empty()) order.prompts.back().answer_begin = begun_answer(tools, calls);
  return {std::move(order), reply_reader(std::move(thoughts), std::move(calls))};
}

chat_order read_as_chat(const request_fields& chat, const served_model& served, std::span<const own_field> fields) {
  try {
    if (!chat.boolean("include_reasoning").value_or(true))
      refuse_field("include_reasoning", "include_reasoning is served for chats alone: leave it out",
                   "unsupported_parameter");
    chat_order asked = read_chat_order(chat, served);
    for (const auto& [field, is_asked] : {std::pair("return_token_ids", asked.order.token_ids),
                                          std::pair("prompt_logprobs", asked.order.prompt_logprobs.has_value())})
      if (is_asked)
        refuse_field(field, fmt::format("{} is served for completions and chats alone: leave it out", field),
                     "unsupported_parameter");
    name_own_fields(asked.order, fields);
    check(asked.order.sampling, served.prompts->config().vocab_size);
    return asked;
  } catch (const field_error& error) {
    throw in_own_words(error, fields);
  }
}

}  // namespace troupe
