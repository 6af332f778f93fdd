// SPDX-License-Identifier: Apache-2.0
//
// LeaderLabel: the label kLeaderLabel on this process' own pod, by which the Service `berth` finds
// the pod that leads. Every replica can then be ready.
//
// A container that starts anew finds the labels of the one before, so the label is taken off first.
// Both ways it is written again now and then: somebody may have changed it by hand, and of two
// requests, the first without an answer, the first may come last.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "server/kube/client/api_client.h"

namespace berth::kube {

inline constexpr const char* kLeaderLabel = "berth.dev/leader";  // "true", or not there

// Step from one thread; the rest from any.
class LeaderLabel {
 public:
  struct Options {
    std::string namespace_name;
    std::string pod;
    Duration again_every = std::chrono::seconds(10);
    Duration retry_every = std::chrono::seconds(1);  // after a write that failed
  };

  // References: they outlive the object.
  LeaderLabel(ApiClient& client, const Clock& clock, Options options);

  // Writes what is wanted, unless that was done a short while ago. Blocks for one request at most;
  // call it some times a second. Error: of the newest write, until one succeeds.
  Status Step(bool wanted);

  // What the API server has taken; nothing before the first write, and while one is in doubt.
  [[nodiscard]] std::optional<bool> written() const;

 private:
  Status Write(bool wanted);

  ApiClient& client_;
  const Clock& clock_;
  const Options options_;
  Instant next_{};
  std::optional<bool> wanted_;  // at the last write
  Status newest_;
  enum class State { kUnknown, kAbsent, kThere };
  std::atomic<State> state_{State::kUnknown};
};

}  // namespace berth::kube
