// SPDX-License-Identifier: Apache-2.0
//
// Summary: the report of a comparison as data - means over the seeds, and over the traces.
//
//   {"made_with", "plan", "baseline", "results": [{"trace", "policy", "seeds", "mean", "deviation",
//     "won_at_100_pct", "won_at_130_pct"}], "runs": the records}
//
// "mean" has the form of a record without its keys; every number is the mean over the seeds (of
// quantiles too), null where no seed has one; what is true with one seed is true. The results end
// with those of trace "mean", the means over all traces, where there are several. "deviation" is
// the sample standard deviation over the seeds of the headline figures. "won_at_x_pct" is the share
// of the GPUs that the baseline leaves idle at x % arrived and this policy allocates:
// 100 * (a - b) / (100 - b).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "bench/replay/compare/part.h"

namespace berth::replay {

// The baseline is fragmentation-gradient where it takes part, else the first policy. Error:
// kInvalidArgument for records that are not as in runs.h.
Result<nlohmann::ordered_json> Summarize(const Runs& runs);

// The mean of values of one form, number by number. Requires: values is not empty.
nlohmann::ordered_json MeanOf(const std::vector<nlohmann::ordered_json>& values);

}  // namespace berth::replay
