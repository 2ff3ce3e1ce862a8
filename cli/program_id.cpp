#include "cli/program_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>

#include <fmt/ranges.h>

namespace troupe {
namespace {

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

/// The build-id in a segment of ELF notes; empty if it is not there.
std::string build_id_in(const char* at, std::size_t left) {
  ElfW(Nhdr) note;
  while (left >= sizeof note) {
    std::memcpy(&note, at, sizeof note);
    const std::size_t before = sizeof note + padded(note.n_namesz), size = before + padded(note.n_descsz);
    if (size > left) return {};
    const auto* bytes = reinterpret_cast<const unsigned char*>(at) + before;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at + sizeof note, "GNU", 4) == 0)
      return fmt::format("{:02x}", fmt::join(bytes, bytes + note.n_descsz, ""));
    at += size, left -= size;
  }
  return {};
}

/// Stops at the first object, which is the program.
int look_at(dl_phdr_info* program, std::size_t, void* found) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
    const std::string id = build_id_in(notes, segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(found) = id;
  }
  return 1;
}

}  // namespace

std::string program_id() {
  std::string found = "unknown";
  ::dl_iterate_phdr(look_at, &found);
  return found;
}

}  // namespace troupe
