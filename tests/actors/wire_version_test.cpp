// Processes of two builds must not misread each other's messages.
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/messages.hpp"
#include "base/sha256.hpp"
#include "base/strong_id.hpp"
#include "transport/zmq/frame.hpp"

namespace troupe::test {
namespace {

template <class T>
struct shape {
  static std::string text() {
    if constexpr (described<T>) {
      return shape<decltype(std::declval<T&>().fields())>::text();
    } else if constexpr (std::is_enum_v<T>) {
      std::string of = "e" + shape<std::underlying_type_t<T>>::text();
      if constexpr (requires(T value) { last_enumerator(value); })
        of += std::to_string(static_cast<int>(last_enumerator(T{})));
      return of;
    } else {
      static_assert(std::is_arithmetic_v<T>);
      const char* kind = std::is_same_v<T, bool>       ? "b"
                         : std::is_floating_point_v<T> ? "f"
                         : std::is_signed_v<T>         ? "i"
                                                       : "u";
      return kind + std::to_string(sizeof(T));
    }
  }
};
template <>
struct shape<std::string> {
  static std::string text() { return "s"; }
};
template <class Tag, class Value>
struct shape<strong_id<Tag, Value>> {
  static std::string text() { return shape<Value>::text(); }
};
template <class T>
struct shape<std::vector<T>> {
  static std::string text() { return "[" + shape<T>::text() + "]"; }
};
template <class T>
struct shape<std::optional<T>> {
  static std::string text() { return "?" + shape<T>::text(); }
};
template <class T, std::size_t Count>
struct shape<std::array<T, Count>> {
  static std::string text() { return std::to_string(Count) + "*" + shape<T>::text(); }
};
template <class First, class Second>
struct shape<std::pair<First, Second>> {
  static std::string text() { return "<" + shape<First>::text() + "," + shape<Second>::text() + ">"; }
};
template <class... Fields>
struct shape<std::tuple<Fields&...>> {
  static std::string text() { return "(" + (std::string() + ... + (shape<Fields>::text() + ",")) + ")"; }
};

template <message... All>
std::string shapes() {
  return ((std::to_string(All::kind) + ":" + shape<All>::text() + "\n") + ...);
}

/// The fields of each version's messages. This does not notice a changed meaning of a field, which also needs a new
/// version.
TEST(wire_version, is_another_one_for_other_messages) {
  const std::string all =
      shapes<join_cluster, join_answer, heartbeat, heartbeat_answer, leave_cluster, end_node, start_stage,
             stage_started, run_step, activations, step_ending, step_done, stage_failed, load_adapter, adapter_loaded,
             drop_adapter, want_piece, adapter_piece, prepare_adapter, adapter_prepared, train_job, stop_training,
             set_training_share, training_progress, training_ended, want_training_piece, training_piece, keep_jobs,
             client_request, client_cancel, client_text, client_refused, client_command, command_answer>();
  const std::pair expected(std::uint16_t{13},
                           std::string("fb73a439ddcce15a41904dbd78deab59259ff0e8e20ab6afb6b768d74cf722d4"));
  EXPECT_EQ(std::pair(frame_header::right_version, sha256().add(all).finish()), expected)
      << "raise frame_header::right_version and say both here; the messages are now\n"
      << all;
}

}  // namespace
}  // namespace troupe::test
