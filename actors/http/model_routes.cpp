#include "actors/http/json_body_impl.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

/// Appends the beginning of an entry, up to its parent. Not by a JSON object, since there may be tens of thousands of
/// entries.
void append_model(std::string& to, const api_context& context, std::string_view name, std::string_view root,
                  std::string_view parent) {
  const auto quoted = [&](std::string_view key, std::string_view text) {
    to += key;
    append_quoted(to, text);
  };
  quoted(R"({"id":)", name);
  to += fmt::format(R"(,"object":"model","created":{},"owned_by":"troupe")", context.created);
  quoted(R"(,"root":)", root);
  if (parent.empty())
    to += R"(,"parent":null)";
  else
    quoted(R"(,"parent":)", parent);
  to += fmt::format(R"(,"max_model_len":{}}})", context.parts.served.prompts->context());
}

void append_base(std::string& to, const api_context& context) {
  append_model(to, context, context.parts.served.model, context.parts.served.model, {});
}

/// The base; each adapter by its name, for the version that answers now; and each version.
void list_models(const api_call& call) {
  const api_context& context = *call.context;
  std::string body = R"({"object":"list","data":[)";
  append_base(body, context);
  const auto known = context.parts.served.adapters->read();
  for (const auto& [name, version] : known->listed) {
    body += ',';
    append_model(body, context, name, version, context.parts.served.model);
  }
  call.exchange->reply({.body = body + "]}"});
}

void show_model(const api_call& call) {
  const api_context& context = *call.context;
  const std::string& name = call.place();
  std::string body;
  if (name == context.parts.served.model) {
    append_base(body, context);
    return call.exchange->reply({.body = std::move(body)});
  }
  const auto version = context.parts.served.adapters->resolve(name);
  const auto details = version ? context.parts.served.adapters->find(*version) : std::nullopt;
  if (!details) throw api_error(404, "the model does not exist: see /v1/models", "model", "model_not_found");
  append_model(body, context, name, details->full_name, context.parts.served.model);
  call.exchange->reply({.body = std::move(body)});
}

/// As in vLLM, publishes an adapter from a folder on the head's machine.
void load_adapter_folder(const api_call& call) {
  const json body = parse_body(call.request->body);
  const request_fields from(body);
  const std::string name = from.required_text("lora_name");
  json arguments{{"name", name}};
  if (const auto path = from.text("lora_path")) arguments["path"] = *path;
  run_command(call.context->parts.store, {"adapters.load", arguments.dump()}, call.exchange,
              [exchange = call.exchange, name](const std::string& result) {
                const auto made = json::parse(result, nullptr, false);
                const std::string version = made.is_object() ? made.value("adapter", name) : name;
                reply_json(exchange, {{"message", "adapter " + version + " is loaded"}, {"adapter", version}});
              });
}

void unload_adapter(const api_call& call) {
  const json body = parse_body(call.request->body);
  const std::string name = request_fields(body).required_text("lora_name");
  run_command(call.context->parts.store, {"adapters.unload", json{{"name", name}}.dump()}, call.exchange,
              [exchange = call.exchange, name](const std::string&) {
                reply_json(exchange, {{"message", "adapter " + name + " is unloaded"}});
              });
}

}  // namespace

void add_model_routes(api_routes& to) {
  to.add("GET", "/v1/models", list_models);
  to.add("GET", "/v1/models/{id}", show_model);
  to.add("POST", "/v1/load_lora_adapter", load_adapter_folder);
  to.add("POST", "/v1/unload_lora_adapter", unload_adapter);
}

}  // namespace troupe
