// The outputs of a batch as two files: its answers and its errors.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/http/api_context.hpp"

namespace troupe {

struct batch_file {
  std::string batch;
  bool errors = false;
};
std::string id_of(const batch_file& file);
/// Empty if `id` names no such file.
std::optional<batch_file> batch_file_of(const std::string& id);

/// Sends lines as they come from the journal, no faster than the client reads. Throws api_error if there is no such
/// batch.
void send_batch_file(const api_call& call, const batch_file& file);
/// Calls `then` later, on the thread for files and batches; errors go to the exchange. Throws like send_batch_file.
void find_batch_file(const api_call& call, const batch_file& file, std::function<void(const stored_file&)> then);
/// Answers why not: the file is in the journal, which forgets a batch whole or not at all. Throws like send_batch_file.
void refuse_to_remove(const api_call& call, const batch_file& file);

/// A file whose size is not known before its batch is measured, by reading all of its lines.
struct unmeasured_file {
  batch_file file;
  std::uint64_t lines = 0;
};
struct listed_file {
  stored_file file;
  std::optional<unmeasured_file> unmeasured = {};
  bool is_gone = false;  ///< only its place in the list is known
};
/// The output files of all batches of the key that have ended, in no order. None is measured for that.
void list_batch_files(const api_call& call, std::function<void(std::vector<listed_file>)> then);
/// Calls `then` later with the size, on the thread for files and batches; errors go to the exchange.
void measure_ended(const api_call& call, const batch_file& file, std::function<void(std::uint64_t bytes)> then);

}  // namespace troupe
