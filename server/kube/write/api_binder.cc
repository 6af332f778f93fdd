// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/api_binder.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "cluster/state/cluster_state.h"
#include "server/kube/client/api_client.h"
#include "server/wire/api/writes_json.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/pod/pod_object.h"

namespace berth::kube {
namespace {

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

}  // namespace berth::kube
