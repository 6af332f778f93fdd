// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/ended_pods.h"

#include "server/wire/pod/pod_object.h"

namespace berth::kube {

void EndedPodSink::Changed(const PaddedText& object) {
  const auto pod = wire::DecodeObservedPod(object, rules_);
  if (!pod || !pod->finished || !pod->life.started) return;
  run_times_.Add(pod->pod, *pod->finished - *pod->life.started, *pod->finished);
}

}  // namespace berth::kube
