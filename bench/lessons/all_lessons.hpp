#pragma once
#include "bench/lessons/lesson.hpp"

namespace troupe::bench {

/// The time of one more token after texts of growing length: the whole text computed again, or only its last token.
lesson_result run_kv_cache(const lesson_place& place);
/// 1 to 64 equal requests in one batch.
lesson_result run_batch_size(const lesson_place& place);
/// Answers of mixed lengths: batches that run until their longest ends, against batches that anybody joins and leaves.
lesson_result run_continuous_batching(const lesson_place& place);
/// Memory, speed and quality of the schemes.
lesson_result run_quantization(const lesson_place& place);
/// The same requests with and without adapters, one after another and in one batch.
lesson_result run_adapters(const lesson_place& place);
/// A long answer and two short ones: when is each of them done?
lesson_result run_streams(const lesson_place& place);

}  // namespace troupe::bench
