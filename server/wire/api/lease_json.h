// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a Lease, coordination.k8s.io/v1: who of several processes leads.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace berth::wire {

struct Lease {
  std::string namespace_name;
  std::string name;
  std::string resource_version;  // empty: to be created
  std::string holder;            // empty: nobody
  int seconds = 0;
  std::string acquire_time;  // RFC 3339 with microseconds
  std::string renew_time;
  int transitions = 0;
};

// Fields that are absent stay empty. Error: kInvalidArgument where it is not a Lease.
Result<Lease> DecodeLease(std::string_view text);
std::string EncodeLease(const Lease& lease);

// "2026-03-01T12:00:00.123456Z", as Kubernetes writes a MicroTime.
std::string MicroTime(WallTime time);
// "2026-03-01T12:00:00Z": what of it are whole seconds.
std::string SecondTime(WallTime time);

}  // namespace berth::wire
