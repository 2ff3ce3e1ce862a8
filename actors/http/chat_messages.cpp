#include "actors/http/chat_messages.hpp"

#include "actors/requests/request_fields_impl.hpp"
#include "model/engine/text/chat_messages.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_messages = 10'000;

/// An assistant's message that only refuses has no content: it gets an empty text, since messages need one.
void fill_refusals(json& messages) {
  for (json& message : messages)
    if (message.is_object() && message.contains("refusal") && message.value("tool_calls", json()).empty() &&
        message.value("content", json()).is_null())
      message["content"] = "";
}

json read_messages(json messages) {
  fill_refusals(messages);
  try {
    prepare_messages(messages);
  } catch (const input_error& error) {
    refuse_field("messages", error.what());
  }
  return messages;
}

}  // namespace

prompt_input read_chat(const request_fields& from) {
  const json* list = from.list("messages");
  if (!list || list->empty()) refuse_field("messages", "messages is missing or empty", "missing_required_parameter");
  if (list->size() > most_messages)
    refuse_field("messages", fmt::format("messages has {} entries: use at most {}", list->size(), most_messages));
  prompt_input input{.field = "messages"};
  input.messages = dump(read_messages(*list));
  if (const json* tools = from.list("tools"); tools && !tools->empty()) input.tools = dump(*tools);
  if (const json* more = from.object("chat_template_kwargs")) input.template_variables = dump(*more);
  input.add_generation_prompt = from.boolean("add_generation_prompt").value_or(true);
  return input;
}

}  // namespace troupe
