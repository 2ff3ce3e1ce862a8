#include <algorithm>

#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
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

[[noreturn]] void refuse_unknown(const std::string& id) {
  throw api_error(404, fmt::format("there is no file {}", id.substr(0, 80)), "id");
}

void upload(file_store& files, const http_request& request, const std::shared_ptr<http_exchange>& exchange) {
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
  reply_json(exchange, to_json(files.add(file->filename, purpose->content, file->content)));
}

}  // namespace

void add_file_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  to.add("POST", "/v1/files",
         [files](const auto& request, const auto&, const auto& exchange) { upload(*files, request, exchange); });
  to.add("GET", "/v1/files", [files](const auto& request, const auto&, const auto& exchange) {
    list_page page(request, 10'000, 10'000);
    const std::string purpose = request.query_value("purpose");
    for (const stored_file& each : files->list())
      if ((purpose.empty() || each.purpose == purpose) && !page.add(each.id, [&] { return to_json(each); })) break;
    reply_json(exchange, page.finish());
  });
  to.add("GET", "/v1/files/{id}", [files](const auto& request, const auto&, const auto& exchange) {
    const std::string& id = request.places[0];
    const auto batch = batch_file_of(id);
    if (batch && files->batch(batch->batch))
      return reply_json(exchange, to_json(stored_file{id, id + ".jsonl", "batch_output", 0, 0}));
    const auto file = files->find(id);
    if (!file) refuse_unknown(id);
    reply_json(exchange, to_json(*file));
  });
  to.add("GET", "/v1/files/{id}/content", [context, files](const auto& request, const auto&, const auto& exchange) {
    const std::string& id = request.places[0];
    if (const auto batch = batch_file_of(id)) return send_batch_file(context, *files, *batch, exchange);
    auto text = files->content(id);
    if (!text) refuse_unknown(id);
    exchange->reply({200, "application/octet-stream", std::move(*text), {}});
  });
  to.add("DELETE", "/v1/files/{id}", [files](const auto& request, const auto&, const auto& exchange) {
    const std::string& id = request.places[0];
    if (!files->remove(id)) refuse_unknown(id);
    reply_json(exchange, {{"id", id}, {"object", "file"}, {"deleted", true}});
  });
}

}  // namespace troupe
