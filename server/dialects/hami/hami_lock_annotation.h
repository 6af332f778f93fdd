// SPDX-License-Identifier: Apache-2.0
//
// HAMi's lock on a node: the annotation hami.io/mutex.lock of the Node names the one pod that its
// device plugin serves next.
//
//   2026-08-21T10:00:00Z,default,train-0      when it was taken, for which pod
//   2026-08-21T10:00:00Z                      of old releases: nobody is named
//
// It is set and removed by a merge patch that carries the version of the node as it was read, so
// that of two who take it one gets 409. (HAMi at 02fba77, pkg/util/nodelock/nodelock.go.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/values/pod_request.h"

namespace berth::dialects {

inline constexpr std::string_view kHamiLockAnnotation = "hami.io/mutex.lock";

struct HamiLock {
  WallTime since;                   // whole seconds
  std::string namespace_name, pod;  // both empty: nobody is named
};

// Error: kInvalidArgument with what was wanted and found.
Result<HamiLock> ParseHamiLock(std::string_view text);
std::string EncodeHamiLock(WallTime now, const PodId& pod);

// What a Node says of it.
struct LockedNode {
  std::string resource_version;
  std::string lock;  // the text; empty = not locked
};
// Error: kInvalidArgument for what is not JSON or has no version.
Result<LockedNode> DecodeLockedNode(const PaddedText& text);

// The application/merge-patch+json of the Node; an empty lock removes it.
std::string EncodeLockPatch(std::string_view resource_version, std::string_view lock);

}  // namespace berth::dialects
