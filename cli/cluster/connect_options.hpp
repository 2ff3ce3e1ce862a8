#pragma once
#include <string>

#include "cli/cli11_fwd.hpp"

namespace troupe {

/// Which cluster a command speaks to.
struct connect_options {
  std::string connect;               ///< empty: TROUPE_CONNECT, else tcp://127.0.0.1:7700
  std::string key;                   ///< empty: TROUPE_KEY, else no encryption
  bool ignores_environment = false;  ///< then an empty key means no encryption, whatever TROUPE_KEY says
};
void add_connect(CLI::App& command, connect_options& options);

std::string endpoint_of(const connect_options& options);
/// The key's file; empty: no encryption.
std::string key_of(const connect_options& options);
/// " --connect X --key Y", as far as they were given: for commands that a person is told to type.
std::string flags_of(const connect_options& options);

}  // namespace troupe
