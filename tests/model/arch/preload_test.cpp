#include "model/arch/preload.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

/// The page is in this process' memory, as the kernel says.
bool is_there(const void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) / static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::uint64_t entry = 0;
  EXPECT_EQ(::pread(map, &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)), ssize_t{sizeof entry});
  ::close(map);
  return entry >> 63 != 0;
}

/// A matrix every two megabytes: the embeddings, a layer's, …, the head.
class preloading : public testing::Test {
 protected:
  preloading() {
    folder_.write("weights", std::string(matrices * distance, 'w'));
    model_.file = mapped_file(folder_.path() / "weights");
    model_.embeddings = matrix(0);
    model_.layers.resize(matrices - 2);
    for (std::size_t i = 0; i < model_.layers.size(); ++i) model_.layers[i].down.w = matrix(i + 1);
    model_.head = matrix(matrices - 1);
  }
  matrix_view matrix(std::size_t number) const {
    return view_of(scheme::u8, 1024, 1024, model_.file.bytes().data() + number * distance);
  }
  std::vector<std::size_t> those_there() const {
    std::vector<std::size_t> there;
    for (std::size_t i = 0; i < matrices; ++i)
      if (const auto* first = model_.file.bytes().data() + i * distance; is_there(first) && is_there(first + 1'000'000))
        there.push_back(i);
    return there;
  }

  static constexpr std::size_t matrices = 6, distance = 2 << 20;
  test::temp_folder folder_;
  loaded_model model_;
};

TEST_F(preloading, brings_in_the_layers_of_a_stage_alone) {
  using numbers = std::vector<std::size_t>;
  EXPECT_EQ(those_there(), numbers{});
  preload(model_, 1, 2);
  EXPECT_EQ(those_there(), (numbers{2, 3}));
  preload(model_, 3, 1);
  EXPECT_EQ(those_there(), (numbers{2, 3, 4, 5})) << "the head with the last layer";
  preload(model_, 0, 1);
  EXPECT_EQ(those_there(), (numbers{0, 1, 2, 3, 4, 5})) << "the embeddings with the first";
}

}  // namespace
}  // namespace troupe
