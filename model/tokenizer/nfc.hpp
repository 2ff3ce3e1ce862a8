#pragma once
#include <string>
#include <string_view>

namespace troupe::detail {

/// False where the text is in Unicode's normalization form C for certain; cheap.
bool may_need_nfc(std::string_view text);
/// The text in form C. Bytes that are no UTF-8 stay where they are, and nothing composes across them.
std::string to_nfc(std::string_view text);

}  // namespace troupe::detail
