// SPDX-License-Identifier: Apache-2.0
//
// What the kubelet gave, where it is not what was planned: the annotation berth.dev/given, for
// kubelets that do not say it in the pod's status (allocatedResourcesStatus, Kubernetes 1.36).
//
//   {"version":1,"containers":{"main":{"nvidia.com/gpu":["GPU-..."]}}}
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "node/facts/node_facts.h"
#include "node/kubelet/pod_resources.h"
#include "node/pods/own_pods.h"
#include "server/kube/client/api_client.h"
#include "server/telemetry/log.h"

namespace berth::node {

// Whether a kubelet of that version ("v1.35.2") says by default what it gave.
bool ReportsDevices(std::string_view kubelet_version);
// Whether it keeps a plugin when another one registers for the resource.
bool KeepsBothPlugins(std::string_view kubelet_version);

// The value of the annotation for a pod and what the kubelet lists of it. nullopt: none is to be
// written, because the devices are as planned, the status says them, or the annotation does
// already. `kubelet_reports`: the kubelet's version says so; a container that runs shows whether it
// is true.
std::optional<std::string> GivenText(const OwnPod& pod, const ListedPod& listed,
                                     const std::set<std::string>& resources, const NodeFacts& facts,
                                     bool kubelet_reports);

// Writes the annotation, on a thread of its own.
class GivenWriter {
 public:
  static constexpr Duration kMostPerWrite = std::chrono::seconds(5);
  static constexpr int kMostWritesPerLook = 20;
  // What the API server refuses is tried again after 0.5 s, 1 s, 2 s, ..., and then with the next
  // change of a pod.
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
  static constexpr int kMostRetries = 8;

  struct Parts {
    kube::ApiClient& client;
    const OwnPods& pods;
    PodResources& kubelet;
    std::function<std::shared_ptr<const NodeFacts>()> facts;
    std::string node;
    Log& log;
    // Whether the kubelet keeps several plugins of one resource (Kubernetes 1.37), once it is
    // known.
    std::function<void(bool keeps)> on_keeps_both;
    // For so long what a kubelet may say itself is written too: while no agent was there nobody
    // chose as planned, and the kubelet may take half a second to say what it gave.
    Duration start = std::chrono::seconds(2);
  };
  // References: they live longer.
  explicit GivenWriter(Parts parts);
  ~GivenWriter();
  GivenWriter(const GivenWriter&) = delete;
  GivenWriter& operator=(const GivenWriter&) = delete;

  // Any thread; return at once. Look: something was given, or pods changed.
  void Look() BERTH_EXCLUDES(mutex_);
  void Carries(std::set<std::string> resources) BERTH_EXCLUDES(mutex_);

 private:
  void Run();
  bool WaitUntilDue() BERTH_EXCLUDES(mutex_);
  bool LookNow();
  [[nodiscard]] bool AtStart() const;
  void LearnVersion();
  bool Write(const OwnPod& pod, const std::string& text);

  const Parts parts_;
  const Instant started_ = Instant::clock::now();
  // Its thread alone.
  bool version_known_ = false;
  bool kubelet_reports_ = false;
  std::map<std::string, std::string> written_;  // UID -> value, of pods that are there
  std::string problem_;
  int retries_ = 0;  // in a row
  Instant retry_at_ = Instant::max();

  Mutex mutex_;
  CondVar changed_;
  bool due_ BERTH_GUARDED_BY(mutex_) = false;
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::set<std::string> resources_ BERTH_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth::node
