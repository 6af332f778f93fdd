// SPDX-License-Identifier: Apache-2.0
//
// How many worlds a test of properties draws. What has to hold is tried on all of them in the
// build that people run. Sanitizers look for faults of memory and of threads. Many alike worlds
// show these no better, and sanitizers are several times slower: they get a quarter.
#pragma once

namespace berth::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BERTH_TEST_IS_SANITIZED
#endif
#endif

// So many, and what they are to show at least, by the same measure.
template <class Count>
constexpr Count Drawn(Count all) {
#ifdef BERTH_TEST_IS_SANITIZED
  return all / 4;
#else
  return all;
#endif
}

}  // namespace berth::test
