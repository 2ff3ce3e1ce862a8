// Where tests find what they read.
#pragma once
#include <filesystem>

namespace troupe::test {

inline const std::filesystem::path fixtures = TROUPE_FIXTURES;
inline const std::filesystem::path golden = fixtures / "golden";
/// Published models and texts. Tests that need them are skipped where it is absent.
inline const std::filesystem::path shared_data = TROUPE_SHARED_DATA;
inline const std::filesystem::path configs = TROUPE_CONFIGS;
inline const std::filesystem::path docs = TROUPE_DOCS;

}  // namespace troupe::test
