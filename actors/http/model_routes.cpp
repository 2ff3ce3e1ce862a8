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

void show_model(const api_context& context, const std::string& name, const std::shared_ptr<http_exchange>& exchange) {
  if (name == context.parts.model) return reply_json(exchange, base_json(context));
  const auto version = context.parts.adapters->resolve(name);
  const auto details = version ? context.parts.adapters->find(*version) : std::nullopt;
  if (!details) throw api_error(404, "the model does not exist: see /v1/models", "model", "model_not_found");
  reply_json(exchange, adapter_json(context, name, details->full_name));
}

/// vLLM's way to publish an adapter; the folder is one of the head's machine.
void load_adapter_folder(const api_context& context, const http_request& request,
                         const std::shared_ptr<http_exchange>& exchange) {
  const json body = parse_body(request.body);
  const request_fields from(body);
  const std::string name = from.required_text("lora_name");
  json arguments{{"name", name}};
  if (const auto path = from.text("lora_path")) arguments["path"] = *path;
  run_command(context.parts.store, client_command{"adapters.load", arguments.dump()}, exchange,
              [exchange, name](const std::string& result) {
                const auto made = json::parse(result, nullptr, false);
                const std::string version = made.is_object() ? made.value("adapter", name) : name;
                reply_json(exchange, {{"message", "adapter " + version + " is loaded"}, {"adapter", version}});
              });
}

void unload_adapter(const api_context& context, const http_request& request,
                    const std::shared_ptr<http_exchange>& exchange) {
  const json body = parse_body(request.body);
  const std::string name = request_fields(body).required_text("lora_name");
  run_command(context.parts.store, client_command{"adapters.unload", json{{"name", name}}.dump()}, exchange,
              [exchange, name](const std::string&) {
                reply_json(exchange, {{"message", "adapter " + name + " is unloaded"}});
              });
}

}  // namespace

void add_model_routes(api_routes& to) {
  const auto context = to.context();
  to.add("GET", "/v1/models",
         [context](const auto&, const auto&, const auto& exchange) { reply_json(exchange, models_json(*context)); });
  to.add("GET", "/v1/models/{id}", [context](const auto& request, const auto&, const auto& exchange) {
    show_model(*context, request.places[0], exchange);
  });
  to.add("POST", "/v1/load_lora_adapter", [context](const auto& request, const auto&, const auto& exchange) {
    load_adapter_folder(*context, request, exchange);
  });
  to.add("POST", "/v1/unload_lora_adapter", [context](const auto& request, const auto&, const auto& exchange) {
    unload_adapter(*context, request, exchange);
  });
}

}  // namespace troupe
