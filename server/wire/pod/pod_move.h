// SPDX-License-Identifier: Apache-2.0
//
// PodMoveWords: what a Pod and the agents around it say of moving it, in the words of Kubernetes,
// Karpenter and cluster-autoscaler. Nothing of the texts is kept.
#pragma once

#include <string_view>

#include "cluster/values/pod_request.h"

namespace berth::wire {

struct PodMoveWords {
  bool do_not_disrupt = false;
  bool not_safe = false, safe = false;  // cluster-autoscaler's two words
  bool has_host_path = false;
  int deletion_cost = 0;
  int grace_seconds = 30;

  // Whether the annotation is one of them. No dialect reads these.
  static bool Reads(std::string_view key);
  // What cannot be read says nothing, as its owner has it. Requires: Reads(key).
  void Take(std::string_view key, std::string_view value);
  // Of a pod that has a controller.
  [[nodiscard]] Mobility mobility() const;
};

}  // namespace berth::wire
