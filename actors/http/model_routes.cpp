#include "actors/http/json_body_impl.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/routes.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {
namespace {

/// An entry, written without a JSON object, since there may be tens of thousands of them.
std::string model_json(const api_context& context, std::string_view name, std::int64_t created, std::string_view root,
                       std::string_view parent) {
  return fmt::format(
      R"({{"id":{},"object":"model","created":{},"owned_by":"troupe","root":{},"parent":{},"max_model_len":{}}})",
      json_text(name), created, json_text(root), json_text_or_null(parent), context.served.prompts->context());
}

std::string base_json(const api_context& context) {
  return model_json(context, context.served.model, context.created, context.served.model, {});
}

/// The base; each adapter by its name, for the version that answers now; and each version.
void list_models(const api_call& call) {
  const api_context& context = *call.context;
  const served_model& served = context.served;
  std::string body = R"({"object":"list","data":[)" + base_json(context);
  const auto known = served.adapters->read();
  for (const auto& [name, version, created] : known->listed)
    body += "," + model_json(context, name, created, version, served.model);
  call.exchange->reply({.body = body + "]}"});
}

void show_model(const api_call& call) {
  const api_context& context = *call.context;
  const served_model& served = context.served;
  const std::string& name = call.path_part();
  if (served.is_base(name)) return call.exchange->reply({.body = base_json(context)});
  const auto adapter = served.find_adapter(name);
  if (!adapter) throw unknown_model(name);
  call.exchange->reply(
      {.body = model_json(context, own_name(name), adapter->created, adapter->full_name, served.model)});
}

bool may_name_adapter(const api_context& context, const std::string& name) {
  return is_adapter_name(name) && !is_base_name(name, context.served.model);
}

/// Adapters answer everybody, and they come from folders of the head's machine.
void require_admin(const api_call& call) {
  if (!call.key.is_admin)
    throw api_error(403,
                    "adapters are loaded and unloaded by keys of administrators: `troupe keys add --admin` makes one",
                    {}, "admin_key_needed");
}

/// As in vLLM, publishes an adapter from a folder on the head's machine.
void load_adapter_folder(const api_call& call) {
  require_admin(call);
  const json body = parse_body(call.request->body);
  const request_fields from(body);
  const std::string name(own_name(from.required_text("lora_name")));
  const auto path = from.text("lora_path");
  json arguments{{"name", name}};
  if (path) arguments["path"] = *path;
  const bool is_folder_at_fault = path && may_name_adapter(*call.context, name);
  const bool wants_path = !path && is_adapter_name(name);
  run_command(
      call.context->store, {"adapters.load", dump(arguments)}, call.exchange,
      {.done =
           [exchange = call.exchange, name](const std::string& result) {
             const json loaded = json::parse(result, nullptr, false);
             const std::string version = loaded.is_object() ? loaded.value("adapter", name) : name;
             reply_json(exchange, {{"message", "adapter " + version + " is loaded"}, {"adapter", version}});
           },
       .field = is_folder_at_fault ? "lora_path" : "lora_name",
       .unknown = wants_path ? "adapter " + name + ": there is none: name its folder or file in lora_path" : ""});
}

/// `field`: where the request has the name.
void unload(const api_call& call, const std::string& name, const char* field, json answer) {
  require_admin(call);
  run_command(call.context->store, {"adapters.unload", dump({{"name", own_name(name)}})}, call.exchange,
              {.done = [exchange = call.exchange,
                        answer = std::move(answer)](const std::string&) { reply_json(exchange, answer); },
               .field = field});
}

/// As in vLLM.
void unload_adapter(const api_call& call) {
  const json body = parse_body(call.request->body);
  const std::string name = request_fields(body).required_text("lora_name");
  unload(call, name, "lora_name", {{"message", "adapter " + name + " is unloaded"}});
}

/// As at OpenAI: an adapter, or one version of it.
void delete_model(const api_call& call) {
  const std::string& name = call.path_part();
  unload(call, name, "model", {{"id", name}, {"object", "model"}, {"deleted", true}});
}

}  // namespace

void add_model_routes(api_routes& to) {
  to.add("GET", "/v1/models", list_models);
  to.add("GET", "/v1/models/{id...}", show_model);
  to.add("DELETE", "/v1/models/{id...}", delete_model);
  to.add("POST", "/v1/load_lora_adapter", load_adapter_folder);
  to.add("POST", "/v1/unload_lora_adapter", unload_adapter);
}

}  // namespace troupe
