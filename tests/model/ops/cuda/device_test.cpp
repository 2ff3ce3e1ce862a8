// Memory, streams and graphs, and that the device of plain C++ notices what a real one would do wrong in silence.
#include <numeric>
#include <stdexcept>

#include "base/device_lost.hpp"
#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe::cuda {
namespace {

using cuda_device = device_test;

TEST_F(cuda_device, copies_there_and_back) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 7);
  EXPECT_EQ(device_array<int>(numbers).read(), numbers);
}

TEST_F(cuda_device, copies_columns_of_rows) {
  const stream on;
  const device_array<float> rows(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const device_array<float> side_by_side(std::vector<float>{0, 0, 0, 0});
  copy_columns(side_by_side.data(), 2, rows.data() + 1, 4, 2, 2, on);
  copy_columns(rows.data(), 4, side_by_side.data(), 2, 2, 2, on);
  on.wait();
  EXPECT_EQ(side_by_side.read(), (std::vector<float>{2, 3, 6, 7}));
  EXPECT_EQ(rows.read(), (std::vector<float>{2, 3, 3, 4, 6, 7, 7, 8}));
}

TEST_F(cuda_device, runs_a_recorded_graph_as_often_as_it_is_started) {
  const device_array<float> logits(std::vector<float>{1, 3, 2, 0, 9, 8, 7, 0});
  const device_array<float> other(std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0});
  const device_array<float> input(8), scratch(std::size_t(argmax_scratch_floats(2)));
  const device_array<std::int32_t> tokens(2), untouched(std::vector<std::int32_t>{-1, -1});
  const stream on;
  const auto find = [&] { argmax(on, {2, 3, {input.data(), 4}, tokens.data(), scratch.data()}); };
  find();  // loads the kernel
  copy(tokens.data(), untouched.data(), 2, on);
  const graph recorded = graph::capture(on, find);
  on.wait();
  EXPECT_EQ(tokens.read(), (std::vector<std::int32_t>{-1, -1})) << "recording runs nothing";
  for (const auto* from : {&logits, &other}) {
    copy(input.data(), from->data(), 8, on);
    recorded.launch(on);
    on.wait();
    EXPECT_EQ(tokens.read(), from == &logits ? (std::vector<std::int32_t>{1, 0}) : (std::vector<std::int32_t>{2, 2}));
  }
}

TEST_F(cuda_device, a_stream_is_usable_after_a_recording_that_failed) {
  const stream on;
  EXPECT_THROW(graph::capture(on, [] { throw std::logic_error("no"); }), std::logic_error);
  const device_array<int> numbers(std::vector<int>{1, 2, 3});
  clear(numbers.data(), 12, on);
  on.wait();
  EXPECT_EQ(numbers.read(), (std::vector<int>{0, 0, 0}));
}

TEST_F(cuda_device, a_stream_that_is_held_sees_what_came_before_the_event) {
  const stream first, second;
  const event done;
  const device_array<int> from(std::vector<int>{5}), between(1), to(1);
  copy(between.data(), from.data(), 1, first);
  done.record(first);
  done.hold(second);
  copy(to.data(), between.data(), 1, second);
  second.wait();
  EXPECT_EQ(to.read(), std::vector<int>{5});
}

TEST_F(cuda_device, more_memory_than_there_is_is_refused) {
  EXPECT_THROW(device_buffer<std::byte>(std::size_t{1} << 50), std::bad_alloc);
  EXPECT_THROW(pinned_buffer<std::byte>(std::size_t{1} << 50), std::bad_alloc);
}

TEST_F(cuda_device, an_error_names_the_operation) {
  try {
    check(cudaErrorInvalidValue, "matmul");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cuda: matmul: invalid argument");
  }
}

TEST_F(cuda_device, what_no_call_of_the_process_survives_is_told_from_the_rest) {
  EXPECT_THROW(check(cudaErrorLaunchFailure, "matmul"), device_lost);
  EXPECT_THROW(check(cudaErrorIllegalAddress, "matmul"), device_lost);
  EXPECT_THROW(check(static_cast<cudaError_t>(226), "matmul"), device_lost) << "hardware errors of Hopper end so";
  EXPECT_THROW(check(static_cast<cudaError_t>(721), "matmul"), device_lost) << "tensor memory that was not given back";
  EXPECT_THROW(check(cudaErrorMpsClientTerminated, "matmul"), device_lost);
  EXPECT_THROW(check(cudaErrorExternalDevice, "matmul"), device_lost);
  EXPECT_THROW(check(cudaErrorUnknown, "matmul"), device_lost);
  try {
    check(cudaErrorMemoryAllocation, "matmul");
    FAIL();
  } catch (const device_lost&) {
    FAIL() << "less memory may do";
  } catch (const std::runtime_error&) {
  }
}

}  // namespace
}  // namespace troupe::cuda
