// Constraints are whatever a client says. This compiles arbitrary ones of every kind (the first byte says which) and
// follows a few bytes through what came out: none may crash, hang or exhaust memory.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "model/grammar/constraint.hpp"
#include "model/grammar/text_automaton.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  troupe::output_constraint constraint;
  constraint.kind = static_cast<troupe::constraint_kind>(1 + data[0] % 6);
  constraint.text.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (constraint.kind == troupe::constraint_kind::calls) constraint.before = "<c>", constraint.after = "</c>";
  troupe::byte_set all;
  all.set();
  try {
    troupe::text_automaton automaton(compile(constraint, all));
    auto state = automaton.start();
    for (const char byte : constraint.text) state = automaton.next(state, static_cast<std::uint8_t>(byte));
    state = automaton.start();
    for (int step = 0; step < 64 && state >= 0; ++step)  // some way through, the lowest byte that is allowed
      for (unsigned byte = 0; byte < 256; ++byte)
        if (const auto next = automaton.next(state, static_cast<std::uint8_t>(byte)); next >= 0) {
          state = next;
          break;
        }
    automaton.short_sighted(state, 8);
  } catch (const troupe::input_error&) {
    // Refusing is what most inputs deserve.
  }
  return 0;
}
