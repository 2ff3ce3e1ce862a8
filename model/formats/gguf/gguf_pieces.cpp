#include <array>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf/gguf.hpp"

// GGUF files on disk. A large model may be cut into pieces, NAME-00001-of-00003.gguf and so on: the first has the
// metadata, and each says under "split." which one it is.
namespace troupe {
namespace {

std::string piece_ending(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number, count);
}

gguf_file open_piece(const std::filesystem::path& path) {
  gguf_file file;
  file.tensors.files.emplace_back(path);
  parse_gguf(file.tensors.files.front().bytes(), path.string(), file);
  return file;
}

std::int64_t piece_count(const gguf_file& file) {
  return file.get<std::int64_t>("split.count").value_or(1);
}

/// `number`: from 1 on; the file counts from 0 on.
bool is_piece(const gguf_file& file, std::int64_t number) {
  return file.get<std::int64_t>("split.no").value_or(0) == number - 1;
}

void add_piece(gguf_file&& piece, std::int64_t number, gguf_file& whole) {
  if (!is_piece(piece, number) || piece_count(piece) != piece_count(whole))
    refuse("{}: does not belong to {}: its metadata has another number of itself, or of pieces", piece.name,
           whole.name);
  whole.tensors.tensors.merge(piece.tensors.tensors);
  if (!piece.tensors.tensors.empty())
    refuse("{}: has the tensor \"{}\", which is in an earlier piece", piece.name,
           piece.tensors.tensors.begin()->first.substr(0, 200));
  whole.tensors.files.push_back(std::move(piece.tensors.files.front()));
}

/// Adds the other pieces, which lie beside the first.
void add_pieces(const std::filesystem::path& first, gguf_file& whole) {
  const std::int64_t count = piece_count(whole);
  const std::string name = first.filename().string(), ending = piece_ending(1, count);
  if (!is_piece(whole, 1) || !name.ends_with(ending))
    refuse("{}: is one of {} pieces: name the first, which is called NAME{}, and keep the others beside it", whole.name,
           count, ending);
  const std::string stem = name.substr(0, name.size() - ending.size());
  for (std::int64_t number = 2; number <= count; ++number)
    add_piece(open_piece(first.parent_path() / (stem + piece_ending(number, count))), number, whole);
  std::erase_if(whole.metadata, [](const auto& entry) { return entry.first.starts_with("split."); });
}

bool begins_as_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // a pipe is not waited for
  std::array<char, 4> read{};
  std::ifstream(path, std::ios::binary).read(read.data(), read.size());
  return std::string_view(read.data(), read.size()) == "GGUF";
}

bool has_gguf_ending(const std::filesystem::path& path) {
  return lower_case(path.extension().string()) == ".gguf";
}

}  // namespace

bool is_gguf_file(const std::filesystem::path& path) {
  return !is_folder(path) && (has_gguf_ending(path) || begins_as_gguf(path));
}

bool is_named_as_weights(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return has_gguf_ending(file) && !name.starts_with("mmproj") && name.find("imatrix") == name.npos;
}

gguf_file open_gguf(const std::filesystem::path& path) {
  gguf_file file = open_piece(path);
  if (piece_count(file) > 1) add_pieces(path, file);
  return file;
}

std::optional<gguf_file> find_gguf_metadata(const std::filesystem::path& model) {
  if (!is_folder(model)) return open_gguf(model);
  const auto file = model / gguf_metadata_name;
  if (!path_exists(file)) return std::nullopt;
  return open_gguf(file);
}

}  // namespace troupe
