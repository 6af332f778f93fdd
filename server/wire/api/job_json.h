// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a batch/v1 Job, as the API server lists and watches it: until when it runs. (What it
// says of gangs is read in server/dialects/groups.)
#pragma once

#include <string>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"
#include "scoring/earmarks/job_ends.h"

namespace berth::wire {

// A deadline that no Job has, or one of more than a year, is none; a start that is no time has not
// been. Error: kInvalidArgument for what is not JSON, not a Job, has no name, or a UID that no pod
// can name as that of its controller.
Result<JobDeadline> DecodeJobDeadline(const PaddedText& text);

// The JSON of a policy/v1 PodDisruptionBudget, as the API server lists and watches it.

// Error: kInvalidArgument for what is not JSON, not such a budget, or has an operator that there is
// not.
Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text);

}  // namespace berth::wire
