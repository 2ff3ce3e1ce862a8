#pragma once
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "cluster/journal/journal.hpp"
#include "cluster/journal/journal_database.hpp"

namespace troupe::detail {

template <class... Args>
journal_error error(journal_error::reason why, fmt::format_string<Args...> format, Args&&... args) {
  return {why, fmt::format(format, std::forward<Args>(args)...)};
}

inline journal_error no_such_job(std::string_view id) {
  const std::string_view shown = is_short_word(id) ? id : "(no id)";  // it may be any text
  return error(journal_error::reason::unknown, "job {}: there is none: see `troupe jobs`", shown);
}

/// Rows with about so many bytes of text together.
template <class Row>
auto page_of(statement& rows, std::size_t bytes, Row&& row) {
  std::vector<decltype(row(rows))> page;
  for (std::size_t taken = 0; taken < bytes && rows.step(); taken += page.back().text.size() + 1)
    page.push_back(row(rows));
  return page;
}

/// The number of a state in the file.
constexpr std::int64_t code_of(job_state state) {
  return static_cast<std::int64_t>(state);
}

// The state of removed jobs: nobody finds them by id, and their rows are deleted piece by piece.
#define TROUPE_REMOVED "7"
static_assert(code_of(job_state::paused) == 6, "no other state has that number");

}  // namespace troupe::detail

namespace troupe {

using detail::code_of;
using detail::error;
using detail::statement;
using detail::transaction;
using reason = journal_error::reason;

}  // namespace troupe
