// SPDX-License-Identifier: Apache-2.0
//
// ApiGangHistory: pods of gangs that have ended, as the API server still has them. The watch of
// pods leaves them out.
#pragma once

#include <string>
#include <vector>

#include "scoring/earmarks/pod_ends.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/watch/reflector.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

class ApiGangHistory final : public GangHistory {
 public:
  // Of a namespace with more pods the first ones, by name.
  static constexpr int kMostPods = 20'000;

  // References: they outlive the object.
  ApiGangHistory(ApiClient& client, const wire::PodRules& rules, int most_pods = kMostPods)
      : client_(client), rules_(rules), most_pods_(most_pods) {}

  Result<std::vector<GangPast>> In(const std::string& namespace_name) override;

 private:
  ApiClient& client_;
  const wire::PodRules& rules_;
  const int most_pods_;
};

// EndedPodSink: pods that have ended well, as the API server has them, for who learns how long pods
// run. Its list brings what ended before this process began. (The watch of pods leaves them out.)

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

// JobDeadlineSink: the deadlines of Jobs, out of a watch that somebody else has use for: Jobs are
// many, and listed once.

// Passes everything on to `next`, which also reports Jobs that cannot be read; here they are left
// out.
class JobDeadlineSink final : public ObjectSink {
 public:
  // References: they outlive the sink.
  JobDeadlineSink(JobEndTable& jobs, ObjectSink& next) : jobs_(jobs), next_(next) {}

  void ListBegins() override;
  void Listed(const PaddedText& object) override;
  void ListEnds() override;
  void NotServed() override;
  void Changed(const PaddedText& object) override;
  void Deleted(const PaddedText& object) override;

 private:
  void Take(const PaddedText& object);

  JobEndTable& jobs_;
  ObjectSink& next_;
};

}  // namespace berth::kube
