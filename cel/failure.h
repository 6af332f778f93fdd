// SPDX-License-Identifier: Apache-2.0
//
// Failure: why an expression gives no verdict on a device. The three kinds ask for three things.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace berth::cel {

enum class FailureKind {
  kUnsupported,  // Berth does not evaluate it, Kubernetes may: leave the claim to kube-scheduler
  kRefused,      // no valid expression: Kubernetes refuses the claim or class that has it
  kFailed,       // evaluation failed, as it does in kube-scheduler: NO device may be allocated for
                 // the claim on this node, and not merely this device left out
};

struct Failure {
  FailureKind kind = FailureKind::kFailed;
  std::string message;  // lower case, no full stop: `no such key "productName"`
};

template <class T>
using Expected = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Fail(FailureKind kind, std::string message) {
  return tl::unexpected<Failure>(Failure{kind, std::move(message)});
}

}  // namespace berth::cel
