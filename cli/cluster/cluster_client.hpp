#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/messages.hpp"
#include "cli/cluster/connect_options.hpp"
#include "cli/interrupt.hpp"

namespace troupe {

class head_link;

/// A cluster, from outside. Belongs to one thread. When a new head has started it is asked again, so that clients only
/// see a pause; if none answers for a minute, this throws a runtime_error.
class cluster_client {
 public:
  /// Throws a runtime_error where nobody answers within three seconds. `check` is called while it waits for answers,
  /// now and later, and throws to end that.
  explicit cluster_client(const connect_options& options, std::function<void()> check = check_interrupt);
  ~cluster_client();

  /// As flags_of.
  const std::string& flags() const;

  /// Whether a command may be sent again to a new head, although the old one may have carried it out before it died.
  enum class repeating : std::uint8_t { no, yes };
  /// `arguments`: an object; null for none. Returns an object or a list. Throws input_error where the command is at
  /// fault, unknown_error where that is by what it names, type_error where a text is no UTF-8, else runtime_error.
  nlohmann::ordered_json command(const std::string& name, const nlohmann::ordered_json& arguments,
                                 repeating may = repeating::yes);

  /// One answer, part by part, each token once. Returns the last part, or nothing once `is_stopped` said so: then the
  /// cluster is told. Throws as command() does.
  std::optional<client_text> ask(client_request request, const std::function<void(const client_text&)>& on_part,
                                 const std::function<bool()>& is_stopped);

  /// A file of the adapter store, piece by piece.
  void fetch(const std::string& sha256, const adapter_file_info& file,
             const std::function<void(std::span<const std::byte>)>& on_piece);

 private:
  std::unique_ptr<head_link> link_;
};

}  // namespace troupe
