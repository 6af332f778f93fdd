// SPDX-License-Identifier: Apache-2.0
//
// EndedPodSink: pods that have ended well, as the API server has them, for who learns how long pods
// run. Its list brings what ended before this process began. (The watch of pods leaves them out.)
#pragma once

#include "scoring/earmarks/run_times.h"
#include "server/kube/watch/reflector.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

// Pods that failed, that were evicted or deleted while they ran do not count: they were cut short.
// Neither do pods without GPUs. Keeps nothing of its own; a pod may come as often as it likes.
class EndedPodSink final : public ObjectSink {
 public:
  static constexpr const char* kQuery = "fieldSelector=status.phase=Succeeded";

  // References: they outlive the sink.
  EndedPodSink(RunTimeTable& run_times, const wire::PodRules& rules)
      : run_times_(run_times), rules_(rules) {}

  void ListBegins() override {}
  void Listed(const PaddedText& object) override { Changed(object); }
  void ListEnds() override {}
  void Changed(const PaddedText& object) override;
  void Deleted(const PaddedText& /*object*/) override {}

 private:
  RunTimeTable& run_times_;
  const wire::PodRules& rules_;
};

}  // namespace berth::kube
