#include <set>

#include "actors/http/json_body_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

json base_json(const api_context& context) {
  return {{"id", context.parts.model},
          {"object", "model"},
          {"created", context.created},
          {"owned_by", "troupe"},
          {"root", context.parts.model},
          {"parent", nullptr},
          {"max_model_len", context.parts.prompts->context()}};
}

json adapter_json(const api_context& context, const std::string& name, const std::string& version) {
  json made = base_json(context);
  made["id"] = name;
  made["root"] = version;
  made["parent"] = context.parts.model;
  return made;
}

/// The base, each adapter by the name that answers now, and each version.
json models_json(const api_context& context) {
  auto list = json::array({base_json(context)});
  const auto known = context.parts.adapters->read();
  std::set<std::pair<std::string, std::string>> adapters;
  for (const auto& [name, version] : known->names) {
    const auto details = known->versions.find(version);
    if (details != known->versions.end() && name.find(':') == name.npos)
      adapters.emplace(name, details->second.full_name);
  }
  for (const auto& [name, version] : adapters) list.push_back(adapter_json(context, name, version));
  return {{"object", "list"}, {"data", std::move(list)}};
}

void list_models(const api_call& call) {
  reply_json(call.exchange, models_json(*call.context));
}

void show_model(const api_call& call) {
  const api_context& context = *call.context;
  const std::string& name = call.place();
  if (name == context.parts.model) return reply_json(call.exchange, base_json(context));
  const auto version = context.parts.adapters->resolve(name);
  const auto details = version ? context.parts.adapters->find(*version) : std::nullopt;
  if (!details) throw api_error(404, "the model does not exist: see /v1/models", "model", "model_not_found");
  reply_json(call.exchange, adapter_json(context, name, details->full_name));
}

/// vLLM's way to publish an adapter; the folder is one of the head's machine.
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
