// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <variant>

#include "base/random.h"
#include "base/text.h"
#include "cluster/state/cluster_state.h"
#include "server/kube/client/api_client.h"
#include "server/wire/api/api_json.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/pod/pod_object.h"

namespace berth::kube {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(200);  // between attempts
constexpr Duration kMostPerWake = std::chrono::seconds(5);
constexpr Duration kMostPerHold = std::chrono::seconds(5);

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

constexpr Duration kMostPerRequest = std::chrono::seconds(10);
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::seconds(2);

// The API server gives the request up after that time, counted from when it came. Without it a
// Binding may wait there for 34 s and be carried out when another process leads.
std::string GivenUpAfter(Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return "?timeout=" + std::to_string(std::max<std::int64_t>(ms, 1)) + "ms";
}

constexpr const char* kNoDevices = "no devices";

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

Status ApiBinder::Bind(const BindOrder& order) {
  FencedWrite write(parts_.write.fence, [&order] { return NoteOfBind(order); });
  const auto post = [&] { return Post(order); };
  Status bound = parts_.surround ? parts_.surround(order, post) : post();
  if (!bound && bound.error().code == Errc::kUnavailable) write.Unanswered();
  return bound;
}

Status ApiBinder::Post(const BindOrder& order) {
  ApiRequest request;
  request.method = "POST";
  BERTH_TRY(request.path, PodPath(order.pod.id.namespace_name, order.pod.id.name));
  const std::string binding = request.path + "/binding";
  BERTH_TRY(request.body,
            wire::EncodeBinding(order.pod, order.placement, order.node, order.decision,
                                parts_.write.clock.Wall(), parts_.rules.dialects()));
  bool in_doubt = false, settled = false;
  int attempts = 0;
  const auto attempt = [&](Duration left) {
    if (attempts++ > 0) ++retries_;
    request.timeout = std::min(kMostPerRequest, left);
    request.path = binding + GivenUpAfter(request.timeout);
    const bool was_in_doubt = in_doubt;
    Attempt last = TryOnce(request, in_doubt);
    // A refusal, for example by an API server that has just started and has read no rights yet,
    // does not say what became of an attempt before it. A conflict does, once the pod is looked at.
    settled =
        last.final && (!was_in_doubt || last.status || last.status.error().code == Errc::kConflict);
    return last;
  };
  const auto seed = static_cast<std::uint64_t>(parts_.write.clock.Now().time_since_epoch().count());
  Status bound = FencedRetry(parts_.write, order.deadline, {kFirstWait, kMostWait, seed}, attempt);
  if (settled) return bound;
  if (!in_doubt) return Fail(Errc::kDeadline, std::move(bound).error().message);
  ++in_doubt_;
  return Fail(Errc::kUnavailable, std::move(bound).error().message);
}

Attempt ApiBinder::TryOnce(const ApiRequest& request, bool& maybe_done) {
  Result<ApiResponse> response = parts_.write.client.Send(request);
  if (!response) {
    maybe_done = true;
    return {.status = tl::unexpected(std::move(response).error())};
  }
  if (response->ok()) return {.status = {}, .final = true};
  const std::string text = RefusalText(*response);
  if (response->status == 404) return {.status = Fail(Errc::kNotFound, text), .final = true};
  if (response->status == 409) return {.status = Fail(Errc::kConflict, text), .final = true};
  if (!IsTransient(response->status)) return {.status = Invalid(text), .final = true};
  maybe_done = maybe_done || response->status != 429;
  return {.status = Fail(Errc::kUnavailable, text), .retry_after = response->retry_after};
}

Result<PodTruth> ApiBinder::Find(const PodId& id) {
  return FindPod(parts_.write.client, parts_.rules, id);
}

Result<PodTruth> FindPod(ApiClient& client, const wire::PodRules& rules, const PodId& id) {
  BERTH_TRY(std::string path, PodPath(id.namespace_name, id.name));
  BERTH_TRY(ApiResponse response, client.Send({.path = std::move(path)}));
  if (response.status == 404) return Fail(Errc::kNotFound, "the pod was deleted");
  if (!response.ok()) return Fail(Errc::kUnavailable, RefusalText(response));
  auto pod = wire::DecodeObservedPod(PaddedText(std::move(response.body)), rules);
  if (!pod) return Fail(Errc::kUnavailable, std::move(pod).error().message);
  if (pod->pod.id.uid != id.uid)
    return Fail(Errc::kNotFound, "the pod was replaced by another one of the same name");
  PodTruth truth{std::move(pod->pod), std::nullopt, pod->terminating, pod->lacks_devices,
                 std::move(pod->given)};
  if (!pod->node.empty() && !pod->over) truth.placement = std::move(pod->placement);
  return truth;
}

// What counts is what it holds and its gang: the pod itself is asked for when it is needed.
std::string NoteOfBind(const BindOrder& order) {
  const Placement& placement = order.placement;
  if (placement.grants.empty() && placement.mig.empty() && placement.places == 0) return kNoDevices;
  static const auto no_nodes = std::make_shared<const Snapshot>();
  PodRecord record;
  record.placement = placement;
  record.state = PodState::kBound;
  record.pod.id = order.pod.id;
  record.pod.shape = order.pod.shape;
  record.pod.gang = order.pod.gang;
  record.pod.priority = order.pod.priority;
  return wire::EncodeCluster({no_nodes, {std::move(record)}});
}

Result<std::optional<PodBound>> BindOfNote(const std::string& note, const wire::NodeRules& rules) {
  if (note == kNoDevices) return std::optional<PodBound>();
  BERTH_TRY(wire::ClusterFile file, wire::DecodeCluster(note, rules));
  if (file.events.size() == 1) {
    if (auto* const bound = std::get_if<PodBound>(&file.events.front())) {
      return std::optional(std::move(*bound));
    }
  }
  return Invalid("want one pod, got something else");
}

void RefusalNews::Refused(const std::string& problem) {
  std::string kind = problem.substr(0, problem.find(':'));
  {
    const MutexLock lock(mutex_);
    if (kind == kind_) return;
    kind_ = std::move(kind);
  }
  tell_(problem);
}

void RefusalNews::Accepted() {
  const MutexLock lock(mutex_);
  kind_.clear();
}

ApiPodWaker::ApiPodWaker(ApiClient& client, const Clock& clock, const WriteFence& fence,
                         OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      news_(std::move(on_problem)),
      queue_(kMostWaiting, [this](const PodId& pod) { Post(pod); }) {}

bool ApiPodWaker::Wake(const PodId& pod) { return queue_.PushBack(pod); }

void ApiPodWaker::Post(const PodId& pod) {
  const Result<std::string> path = PodPath(pod.namespace_name, pod.name);
  if (!path) return;  // no such pod can be
  ApiRequest request;
  request.method = "PATCH";
  request.path = *path + "/status";
  request.content_type = wire::kWakeContentType;
  request.timeout = kMostPerWake;
  std::string problem;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (clock_.Now() >= fence_.WritableUntil()) return;
    request.body = wire::EncodeWake(pod, clock_.Wall());
    const Result<ApiResponse> response = client_.Send(request);
    if (response && response->ok()) {
      ++woken_;
      return news_.Accepted();
    }
    // Gone, or another pod has its name.
    if (response && (response->status == 404 || response->status == 409)) return;
    problem = ProblemOf(response);
    if (response && !IsTransient(response->status)) break;
    if (!queue_.Pause(kPause)) return;
  }
  ++failed_;
  news_.Refused(problem);
}

PodEvictor::Outcome ApiPodEvictor::Evict(const PodId& pod) {
  const Result<std::string> path = PodPath(pod.namespace_name, pod.name);
  if (!path) return Outcome::kFailed;  // no such pod can be
  FencedWrite write(fence_);
  const Instant now = clock_.Now(), until = fence_.WritableUntil();
  if (now >= until) return Outcome::kFailed;
  ApiRequest request;
  request.method = "POST";
  request.path = *path + "/eviction";
  request.body = wire::EncodeEviction(pod);
  request.timeout = std::min<Duration>(kMostPerEviction, until - now);
  const Result<ApiResponse> response = client_.Send(request);
  if (!response) {
    write.Unanswered();
    news_.Refused(response.error().message);
    return Outcome::kUnknown;
  }
  const bool is_another = response->status == 409 &&  // that has its name
                          response->body.find("UID in precondition") != std::string::npos;
  if (response->ok() || response->status == 404 || is_another) return Outcome::kEvicted;
  // 409: somebody changed the pod or its budget in that moment.
  if (response->status == 429 || response->status == 409) return Outcome::kBlocked;
  news_.Refused(RefusalText(*response));
  return Outcome::kFailed;
}

ApiNodeHolder::ApiNodeHolder(ApiClient& client, const Clock& clock, const WriteFence& fence,
                             OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      news_(std::move(on_problem)),
      queue_(kMostWaiting, [this](const Order& order) { Post(order); }) {}

std::set<std::string> ApiNodeHolder::Held() const {
  const MutexLock lock(mutex_);
  std::set<std::string> held;
  for (const auto& [node, hold] : seen_) {
    if (!hold.mark.empty()) held.insert(node);
  }
  return held;
}

void ApiNodeHolder::Hold(const std::string& node, bool hold) {
  (void)queue_.PushBack({node, hold});
}

void ApiNodeHolder::Saw(const std::string& node, const wire::NodeHold& hold) {
  const MutexLock lock(mutex_);
  if (hold.empty()) {
    seen_.erase(node);
  } else {
    seen_.insert_or_assign(node, hold);
  }
}

void ApiNodeHolder::Post(const Order& order) {
  const auto& [node, hold] = order;
  const Result<std::string> path = NodePath(node);
  if (!path || clock_.Now() < not_before_ || clock_.Now() >= fence_.WritableUntil()) return;
  std::string patch;
  {
    const MutexLock lock(mutex_);
    const auto seen = seen_.find(node);
    patch = wire::EncodeHold(seen == seen_.end() ? wire::NodeHold() : seen->second, hold);
  }
  if (patch.empty()) return;
  const Result<ApiResponse> response =
      client_.Send(MergePatch(*path, std::move(patch), kMostPerHold));
  if (response && (response->ok() || response->status == 404)) return news_.Accepted();
  if (response && !IsTransient(response->status)) not_before_ = clock_.Now() + kAfterRefusal;
  news_.Refused(ProblemOf(response));
}

}  // namespace berth::kube
