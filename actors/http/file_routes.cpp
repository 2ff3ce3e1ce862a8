#include <algorithm>

#include "actors/http/batch_outputs.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/owned_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

json to_json(const stored_file& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.bytes},
          {"created_at", file.created},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"status", "processed"}};
}

void upload(file_store& files, const http_request& request, const api_key& key,
            const std::shared_ptr<http_exchange>& exchange) {
  const auto parts = parse_form(request.header("content-type"), request.body);
  const auto named = [&](const char* name) {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const form_part& part) { return part.name == name; });
    if (found == parts.end()) refuse_field(name, fmt::format("{} is missing", name), "missing_required_parameter");
    return found;
  };
  const auto file = named("file"), purpose = named("purpose");
  if (purpose->content != "batch" && purpose->content != "fine-tune")
    refuse_field("purpose", "purpose should be batch or fine-tune", "unsupported_value");
  reply_json(exchange, to_json(files.add(file->filename, purpose->content, file->content, key.name)));
}

/// Newest first.
void list_files(std::vector<stored_file> files, const http_request& request,
                const std::shared_ptr<http_exchange>& exchange) {
  std::stable_sort(files.begin(), files.end(),
                   [](const stored_file& a, const stored_file& b) { return a.created > b.created; });
  list_page page(request, 10'000, 10'000);
  for (const stored_file& each : files)
    if (!page.add(each.id, [&] { return to_json(each); })) break;
  reply_json(exchange, page.finish());
}

void list_all(const batch_file_call& call, const http_request& request) {
  const std::string purpose = request.query_value("purpose");
  std::vector<stored_file> uploaded = call.files->list();
  std::erase_if(uploaded, [&](const stored_file& each) {
    return !call.key.owns(each.owner) || (!purpose.empty() && each.purpose != purpose);
  });
  if (!purpose.empty() && purpose != "batch_output") return list_files(std::move(uploaded), request, call.exchange);
  list_batch_files(call, [exchange = call.exchange, uploaded, request](std::vector<stored_file> all) {
    all.insert(all.end(), uploaded.begin(), uploaded.end());
    list_files(std::move(all), request, exchange);
  });
}

}  // namespace

void add_file_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  to.add("POST", "/v1/files", [files](const auto& request, const auto& key, const auto& exchange) {
    upload(*files, request, key, exchange);
  });
  to.add("GET", "/v1/files", [context, files](const auto& request, const auto& key, const auto& exchange) {
    guarded_later(*context->parts.file_work, exchange, [=] { list_all({context, files, exchange, key}, request); });
  });
  to.add("GET", "/v1/files/{id}", [context, files](const auto& request, const auto& key, const auto& exchange) {
    const std::string& id = request.places[0];
    if (const auto batch = batch_file_of(id))
      return find_batch_file({context, files, exchange, key}, *batch,
                             [exchange](const stored_file& file) { reply_json(exchange, to_json(file)); });
    reply_json(exchange, to_json(owned_file(*files, id, key)));
  });
  to.add("GET", "/v1/files/{id}/content", [context, files](const auto& request, const auto& key, const auto& exchange) {
    const std::string& id = request.places[0];
    if (const auto batch = batch_file_of(id)) return send_batch_file({context, files, exchange, key}, *batch);
    exchange->reply({200, "application/octet-stream", owned_content(*files, id, key), {}});
  });
  to.add("DELETE", "/v1/files/{id}", [context, files](const auto& request, const auto& key, const auto& exchange) {
    const std::string& id = request.places[0];
    if (const auto batch = batch_file_of(id)) return refuse_to_remove({context, files, exchange, key}, *batch);
    (void)owned_file(*files, id, key);
    files->remove(id);
    reply_json(exchange, {{"id", id}, {"object", "file"}, {"deleted", true}});
  });
}

}  // namespace troupe
