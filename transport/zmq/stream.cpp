#include "transport/zmq/stream.hpp"

#include <algorithm>
#include <utility>

namespace troupe::detail {

void send_window::push(frame message) {
  auto kept = std::make_shared<outgoing>();
  kept->header.kind = message.kind;
  kept->header.correlation = message.correlation;
  kept->header.sequence = confirmed_ + kept_.size() + 1;
  kept->header.body_bytes = message.body.size();
  kept->header.attachment_bytes = message.attachment.size();
  kept->body = std::move(message.body);
  kept->attachment = std::move(message.attachment);
  bytes_ += cost(kept->body.size(), kept->attachment.size());
  kept_.push_back(std::move(kept));
}

std::shared_ptr<const outgoing> send_window::next() const {
  if (given_ == kept_.size()) return nullptr;
  return kept_[given_];
}

bool send_window::confirm(std::uint64_t sequence) {
  if (sequence < confirmed_ || sequence - confirmed_ > kept_.size()) return false;
  for (; confirmed_ < sequence; ++confirmed_) {
    bytes_ -= cost(kept_.front()->body.size(), kept_.front()->attachment.size());
    kept_.pop_front();
    given_ -= std::min<std::size_t>(given_, 1);
  }
  return true;
}

std::optional<frame_error> receive_counter::accept(const frame_header& header) {
  if (header.sequence <= last_) return frame_error::replayed;
  if (header.sequence != last_ + 1) return frame_error::skipped;
  last_ = header.sequence;
  bytes_ += header.body_bytes + header.attachment_bytes;
  return std::nullopt;
}

}  // namespace troupe::detail
