// SPDX-License-Identifier: Apache-2.0
//
// The JSON of Jobs, JobSets and LeaderWorkerSets -> PodGroup: how many of their pods have to start
// together.
//
//   batch Job        the smaller of spec.parallelism and spec.completions; those that have
//                    succeeded need no pod any more
//   JobSet           the pods of all replicated jobs together; their Jobs as above, but for what
//                    has succeeded: its status may be that of the attempt before. Jobs that others
//                    wait for to end (dependsOn, Complete) are left out
//   LeaderWorkerSet  spec.leaderWorkerTemplate.size; 1 where spec.startupPolicy is LeaderReady: the
//                    leader starts alone
//
// 1, which means that each may start alone, also where none of the pods asks for GPUs.
//
// A JobSet that starts jobs with GPUs in order (spec.startupPolicy, dependsOn) says so
// (PodGroup::one_by_one).
#pragma once

#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// kind: one of those of gang_by.h. problem: what of it cannot be used, as DecodePodGroup. Error:
// kInvalidArgument for what is not JSON, not of that kind, or has no name.
Result<PodGroup> DecodeController(const PaddedText& text, std::string_view kind,
                                  const wire::PodRules& rules, std::string& problem);

}  // namespace berth::dialects
