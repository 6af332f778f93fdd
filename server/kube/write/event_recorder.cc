// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/event_recorder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace berth::kube {
namespace {

// "GPU 0, 1 on node n1" or "0.25 of GPU 3 on node n1".
std::string Assigned(const Placement& placement) {
  std::string text = "GPU ";
  for (const DeviceGrant& grant : placement.grants) {
    if (&grant != &placement.grants.front()) text += ", ";
    text += std::to_string(grant.gpu);
    if (grant.milli != kMilliPerGpu) text += " (" + std::to_string(grant.milli) + " milli)";
  }
  return text + " on node " + placement.node;
}

}  // namespace

EventRecorder::EventRecorder(ApiClient& client, const Clock& clock, std::string instance,
                             OnProblem on_problem)
    : client_(client),
      clock_(clock),
      instance_(std::move(instance)),
      on_problem_(std::move(on_problem)),
      queue_(kMostWaiting, [this](wire::PodEvent event) { Take(std::move(event)); }) {}

void EventRecorder::Record(const Decision& decision) {
  if (decision.verb != Verb::kBind) return;
  const bool failed = decision.error != nullptr;
  if (!failed && (decision.placement == nullptr || decision.placement->grants.empty())) return;
  Put({*decision.pod, failed, failed ? "BindFailed" : "GpusAssigned",
       failed ? decision.error->message : Assigned(*decision.placement), clock_.Wall(), instance_});
}

void EventRecorder::Record(const GangNews& news) {
  using enum GangNews::What;
  if (news.what == kPlanned || news.pod.name.empty()) return;
  const bool begun = news.what == kBegun;
  Put({news.pod, !begun, begun ? "GangStarts" : "GangWaits",
       "gang " + news.gang.name + ": " + news.text, clock_.Wall(), instance_});
}

// Not a warning: kube-scheduler warns of such a pod already, and cannot know this.
void EventRecorder::Record(const PodWaits& news) {
  Put({news.pod, false, "WaitsForGpus", news.sentence, clock_.Wall(), instance_});
}

void EventRecorder::Record(const PodsEvicted& news) {
  for (const PodId& victim : news.victims) {
    Warn(victim, "Preempted",
         "Berth evicts it from " + news.node + ": " + news.pod.full_name() + " of priority " +
             std::to_string(news.priority) + " needs its GPUs");
  }
  Put({news.pod, false, "MakesRoom",
       "Berth evicts pods from " + news.node +
           " for it: " + Join(news.victims, " ", &PodId::full_name),
       clock_.Wall(), instance_});
}

void EventRecorder::Record(const RoomNews& news) {
  using enum RoomNews::What;
  constexpr std::array<const char*, 7> kReasons = {"MovesWouldHelp",  "MakesRoom", "MovedForRoom",
                                                   "TakesKeptPlace",  "RoomMade",  "RoomGivenUp",
                                                   "IdleNodesGivenUp"};
  const bool of_moved = news.what == kEvicted || news.what == kMoved;
  const bool is_warning = news.what == kEvicted || news.what >= kGivenUp;
  if (!of_moved && news.pod.name.empty()) return;  // idle nodes: there is no pod to tell
  Put({of_moved ? news.moved : news.pod, is_warning, kReasons[static_cast<std::size_t>(news.what)],
       news.text, clock_.Wall(), instance_});
}

void EventRecorder::Warn(const PodId& pod, std::string reason, std::string message) {
  Put({pod, true, std::move(reason), std::move(message), clock_.Wall(), instance_});
}

void EventRecorder::Put(wire::PodEvent event) {
  const bool warning = event.warning;
  const bool had_room =
      warning ? queue_.PushFront(std::move(event)) : queue_.PushBack(std::move(event));
  if (!had_room) ++dropped_;
}

// A token bucket. The steady clock itself: this waits in real time.
void EventRecorder::Take(wire::PodEvent event) {
  const Instant now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - filled_).count();
  tokens_ = std::min<double>(kBurst, tokens_ + kPerSecond * seconds);
  filled_ = now;
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return Post(event);
  }
  if (event.warning) {
    Put(std::move(event));
  } else {
    ++dropped_;
  }
  (void)queue_.Pause(std::chrono::milliseconds(1000 / kPerSecond));
}

void EventRecorder::Post(const wire::PodEvent& event) {
  // Unique unless one process posts two Events about one pod within a nanosecond.
  const auto time = static_cast<std::uint64_t>(event.time.time_since_epoch().count());
  char suffix[24];
  std::snprintf(suffix, sizeof suffix, ".%016llx",
                static_cast<unsigned long long>(Mix64(time + posted_++)));
  Result<std::string> path = EventsPath(event.pod.namespace_name);
  if (!path) {  // of a bind that was refused: there is no such pod
    ++dropped_;
    return;
  }
  ApiRequest request;
  request.method = "POST";
  request.path = *std::move(path);
  request.body = wire::EncodeEvent(event, event.pod.name + suffix);
  const Result<ApiResponse> response = client_.Send(request);
  std::string problem = ProblemOf(response);
  if (!problem.empty()) ++dropped_;
  if (!problem.empty() && problem != problem_) on_problem_(problem);
  problem_ = std::move(problem);
}

}  // namespace berth::kube
