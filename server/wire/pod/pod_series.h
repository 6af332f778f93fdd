// SPDX-License-Identifier: Apache-2.0
//
// What a pod is one run of (PodRequest::series): the kind and the name of its controller, or its
// own name where it has none, without what each run has anew. nightly-28374650 of a CronJob,
// train-x7k2p of a template and sweep-3 are runs of nightly, train and sweep.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

// The name without its last parts, joined by "-", "." or "_", that are numbers or look drawn: five
// characters out of those that Kubernetes draws from, or five and more with digits in several
// places. Nor has it a number at its end. "": nothing is left.
std::string_view StemOf(std::string_view name);

// 0: it does not end with its work.
std::uint64_t SeriesOf(const PodParts& parts);

// How long a pod runs, by its own word: the annotation berth.dev/expected-duration.
inline constexpr std::string_view kExpectedDurationKey = "berth.dev/expected-duration";

// "2h30m", "45m", "3d": whole numbers of d, h, m and s, each at most once and in this order; from a
// second to 365 days. In seconds. Error: kInvalidArgument naming the annotation.
Result<std::int64_t> ReadExpectedDuration(std::string_view text);

}  // namespace berth::wire
