// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/gang_history.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "server/wire/api/api_json.h"
#include "server/wire/pod/pod_object.h"

namespace berth::kube {
namespace {

// Pods that were made within so long of each other were made together: the next run of a CronJob
// comes a minute later at the earliest.
constexpr auto kMadeTogether = std::chrono::seconds(30);

struct Pod {
  std::string controller;
  std::optional<WallTime> created;
  bool succeeded = false, had_gpus = false;
};

// The pods of one gang.
struct Pods {
  std::set<std::string> controllers;  // of those that have not ended
  std::set<WallTime> created;         // the same
  std::vector<Pod> ended;

  [[nodiscard]] bool AreMadeWith(const Pod& pod) const {
    if (!pod.controller.empty() && controllers.contains(pod.controller)) return true;
    if (!pod.created) return false;
    const auto next = created.lower_bound(*pod.created - kMadeTogether);
    return next != created.end() && *next <= *pod.created + kMadeTogether;
  }
};

void Note(wire::ObservedPod observed, std::map<GangId, Pods>& gangs) {
  if (observed.pod.gang.empty()) return;
  Pods& pods = gangs[observed.pod.gang.id];
  if (observed.over) {
    const bool had_gpus = !observed.node.empty() && observed.pod.shape.wants_gpu();
    pods.ended.push_back(
        {std::move(observed.controller), observed.created, observed.succeeded, had_gpus});
  } else if (!observed.terminating) {
    if (!observed.controller.empty()) pods.controllers.insert(std::move(observed.controller));
    if (observed.created) pods.created.insert(*observed.created);
  }
}

}  // namespace

Result<std::vector<GangPast>> ApiGangHistory::In(const std::string& namespace_name) {
  BERTH_TRY(std::string path, PodsPath(namespace_name));
  std::map<GangId, Pods> gangs;
  std::stop_source stop;
  int seen = 0;
  ApiResponse refusal;
  const auto take = [&](const PaddedText& text) {
    if (++seen > most_pods_) {
      stop.request_stop();
      return;
    }
    if (auto pod = wire::DecodeObservedPod(text, rules_)) Note(*std::move(pod), gangs);
  };
  BERTH_TRY_STATUS(ListPages(client_, {.path = std::move(path)}, stop.get_token(), take, refusal));
  std::vector<GangPast> pasts;
  for (const auto& [gang, pods] : gangs) {
    GangPast past{.gang = gang};
    for (const Pod& pod : pods.ended) {
      if (!pods.AreMadeWith(pod)) continue;
      past.succeeded += pod.succeeded ? 1 : 0;
      past.ran = past.ran || pod.had_gpus;
    }
    if (past.succeeded > 0 || past.ran) pasts.push_back(std::move(past));
  }
  return pasts;
}

void EndedPodSink::Changed(const PaddedText& object) {
  const auto pod = wire::DecodeObservedPod(object, rules_);
  if (!pod || !pod->finished || !pod->life.started) return;
  run_times_.Add(pod->pod, *pod->finished - *pod->life.started, *pod->finished);
}

void JobDeadlineSink::Take(const PaddedText& object) {
  if (const auto job = wire::DecodeJobDeadline(object)) jobs_.Put(*job);
}

void JobDeadlineSink::ListBegins() {
  jobs_.ListBegins();
  next_.ListBegins();
}

void JobDeadlineSink::Listed(const PaddedText& object) {
  Take(object);
  next_.Listed(object);
}

void JobDeadlineSink::ListEnds() {
  jobs_.ListEnds();
  next_.ListEnds();
}

void JobDeadlineSink::NotServed() {
  jobs_.ListEnds();
  next_.NotServed();
}

void JobDeadlineSink::Changed(const PaddedText& object) {
  Take(object);
  next_.Changed(object);
}

void JobDeadlineSink::Deleted(const PaddedText& object) {
  if (const auto job = wire::DecodeJobDeadline(object)) jobs_.Remove(*job);
  next_.Deleted(object);
}

}  // namespace berth::kube
