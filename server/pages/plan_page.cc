// SPDX-License-Identifier: Apache-2.0
#include "server/pages/plan_page.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/dns_name.h"
#include "server/dialects/dra/claim_json.h"
#include "server/extender/inquiry.h"
#include "server/why/api_rules.h"
#include "server/why/plan_json.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

// With quotes in `why`, which http::ErrorResponse does not escape.
http::HttpResponse Refusal(int status, std::string_view why) {
  http::HttpResponse response;
  response.status = status;
  response.body = wire::ObjectOf("error", why);
  return response;
}

int StatusOf(Errc code) {
  if (code == Errc::kUnavailable) return 503;
  return code == Errc::kNotFound ? 404 : 400;
}

const char* WhyNoPlan(const Readiness& readiness) {
  return readiness.draining() ? "draining" : readiness.reason();
}

wire::KnownPods PodsOf(std::span<const WaitingPod> waiting, const Snapshot& snapshot) {
  wire::KnownPods known;
  for (const WaitingPod& pod : waiting) known[pod.pod->id.full_name()] = {pod.pod->id.uid};
  snapshot.ForEachPod([&known](const auto& held, NodeIndex) {
    known[held->pod.id.full_name()] = {held->pod.id.uid, held->placement.node,
                                       held->state == PodState::kPlanned};
  });
  return known;
}

struct Waiting {
  Extender::Moment now;
  std::vector<WaitingPod> listed;  // before it (waiting_pods.h)
  EditedNodes edited = {};
  WaitingLine line = {};
};

// Who waits for the nodes that the plan is about; of a plan with pods of its own none.
Status WhoWaits(const Live& live, const wire::PlanRequest& plan, Waiting& waiting) {
  if (plan.has_pods) waiting.listed.clear();
  BERTH_TRY(waiting.edited, Edit(waiting.now.snapshot, plan.nodes));
  waiting.line = LineOf(std::move(waiting.listed), *waiting.edited.snapshot,
                        live.pod_rules.groups(), wire::kMostPlannedPods);
  for (PodRequest& pod : waiting.line.pods) {
    if (pod.refusal.empty() && !pod.gang.empty()) pod.refusal = live.gangs.Apart(pod);
  }
  return {};
}

Result<std::string> MakeGrowth(const Live& live, const wire::PlanRequest& plan, Waiting waiting,
                               bool as_text, const StopsPlan& stops) {
  BERTH_TRY_STATUS(WhoWaits(live, plan, waiting));
  const auto& [now, listed, edited, line] = waiting;
  wire::GrowthReport report{.request = plan, .pods = plan.has_pods ? plan.pods : line.pods};
  report.gated = line.gated;
  report.beyond = line.beyond;
  BERTH_TRY(report.told, Inquiry(live.extender, now)
                             .WouldTake(report.pods, plan.nodes, plan.grow, plan.at_zero, stops));
  for (const PodRequest& pod : line.planned) {
    report.told.asked += pod;
    report.told.now += pod;
  }
  return as_text ? wire::TextOf(report) : wire::EncodeGrowth(report);
}

// Those of the list that are named, or members of a gang that is. Error: a name is nobody's.
Result<std::vector<PodRequest>> Named(std::span<const PodRequest> pods,
                                      const std::vector<std::string>& names) {
  std::vector<PodRequest> named;
  for (const std::string& name : names) {
    bool is_there = false;
    for (const PodRequest& pod : pods) {
      if (name != pod.id.full_name() && (pod.gang.empty() || name != pod.gang.id.full_name())) {
        continue;
      }
      is_there = true;
      const bool is_new = std::ranges::none_of(
          named, [&pod](const PodRequest& other) { return other.id == pod.id; });
      if (is_new) named.push_back(pod);
    }
    if (!is_there) {
      return Fail(Errc::kNotFound,
                  "make_room.for: no pod that waits, and no gang of such pods, is called " + name);
    }
  }
  return named;
}

Result<std::string> MakeRoomPlan(const Live& live, const wire::PlanRequest& plan, Waiting waiting,
                                 bool as_text, const StopsPlan& stops) {
  BERTH_TRY_STATUS(WhoWaits(live, plan, waiting));
  auto& [now, listed, edited, line] = waiting;
  std::vector<PodRequest> pods = plan.has_pods ? plan.pods : std::move(line.planned);
  pods.insert(pods.end(), line.pods.begin(), line.pods.end());
  const wire::PlanRoom& room = *plan.room;
  if (!room.names.empty()) {
    BERTH_TRY(pods, Named(pods, room.names));
  } else if (room.idle_nodes > 0 && !plan.has_pods) {
    pods.clear();
  }
  Extender::Moment then = now;
  then.snapshot = edited.snapshot;
  const RoomUnits units =
      Inquiry(live.extender, then).WouldMakeRoom(pods, {room.idle_nodes, room.model}, stops, {});
  if (const char* const why = stops ? stops() : nullptr) return Fail(Errc::kUnavailable, why);
  const wire::RoomReport report{plan, pods, *edited.snapshot, edited, units};
  return as_text ? wire::TextOf(report) : wire::EncodeRoom(report);
}

// Of the claims that the cluster has, or else that the templates of the request would make.
Result<ClaimRoom> RoomOfClaims(const Inquiry& inquiry, const PodRequest& pod,
                               const wire::PodNotes& notes, const wire::PlanRequest& plan) {
  auto room = inquiry.RoomOfClaims(pod);
  if (room) return room;
  std::vector<DeviceClaim> made;
  for (const std::string& name : notes.claim_templates) {
    const auto found = plan.claims.find(name);
    if (found == plan.claims.end()) return room;
    BERTH_TRY(dialects::OpenClaim claim, dialects::DecodeOpenClaim(PaddedText(found->second)));
    if (!claim.obstacle.empty()) return Invalid(std::string(claim.obstacle));
    made.push_back(std::move(claim.asks));
  }
  return made.empty() ? std::move(room) : inquiry.RoomOfClaims(pod, std::move(made));
}

// Whether any GPUs of the classes will do, so that counting them says who gets some.
bool AreAnyGpus(const std::vector<DeviceClaim>& claims) {
  const auto is_plain = [](const DeviceWant& want) {
    return !want.all && want.selectors.empty() && want.tolerations.empty() && want.capacity.empty();
  };
  return std::ranges::all_of(claims, [&](const DeviceClaim& claim) {
    return claim.constraints.empty() &&
           std::ranges::all_of(claim.requests, [&](const DeviceRequest& request) {
             return request.wants.size() == 1 && is_plain(request.wants.front());
           });
  });
}

// Keeps pods that get GPUs by claims alone to the nodes that have these now, and has them ask for
// as many GPUs; parts of GPUs, certain GPUs and claims of several pods are judged for each pod by
// itself. Notes of the others what they lack. Returns whose GPUs are counted, by pod.
std::vector<bool> JudgeClaims(const Inquiry& inquiry, const Snapshot& snapshot,
                              const StopsPlan& stops, wire::PlanRequest& plan) {
  std::shared_ptr<const wire::PodNotes> judged, told;  // pods of one template share theirs
  std::shared_ptr<const NodeConstraints> own, where;
  std::optional<RequestShape> whole;
  std::vector<bool> counted(plan.pods.size());
  std::map<std::string, int> users;  // by claim
  for (const PodRequest& pod : plan.pods) {
    for (const auto& name : pod.claims) ++users[FullName(pod.id.namespace_name, name)];
  }
  for (std::size_t i = 0; i < plan.pods.size(); ++i) {
    PodRequest& pod = plan.pods[i];
    auto& notes = plan.notes[i];
    if (pod.claims.empty() || notes == nullptr || !notes->held_back.empty()) continue;
    const bool is_other = own != pod.constraints;  // a DaemonSet's pod on another node
    if (std::exchange(judged, notes) != notes || is_other) {
      if (stops && stops() != nullptr) break;  // as what comes next will say
      where = own = pod.constraints;
      whole.reset();
      auto room = RoomOfClaims(inquiry, pod, *notes, plan);
      const PodExplanation found = room ? inquiry.ExplainClaims(pod, *room) : PodExplanation();
      LabelRequirement there{"metadata.name", LabelOperator::kIn, {}};
      bool together = room && !pod.shape.wants_gpu() && AreAnyGpus(room->claims()) &&
                      std::ranges::all_of(pod.claims, [&](const std::string& name) {
                        return name.empty() || users[FullName(pod.id.namespace_name, name)] == 1;
                      });
      for (NodeIndex node = 0; room && node < snapshot.size(); ++node) {
        if (!room->Has(snapshot.node(node))) continue;
        there.values.push_back(snapshot.node(node).spec().name);
        together = together && !room->InParts(snapshot.node(node));
      }
      wire::PodNotes noted = *notes;
      const bool is_known = room && !room->ran_out();
      if (is_known && found.fitting > 0) {
        NodeConstraints only = where == nullptr ? NodeConstraints() : *where;
        if (!only.either) only.either.emplace(1);
        for (NodeSelectorTerm& term : *only.either) term.fields.push_back(there);
        where = std::make_shared<const NodeConstraints>(std::move(only));
        if (together) {
          whole = room->shape(false);
          std::erase_if(noted.not_judged,
                        [](const std::string& what) { return what.starts_with("ResourceClaim "); });
        }
      } else if (is_known) {
        noted.held_back = WholeLineOf(found.line);
      } else if (std::ranges::any_of(noted.claim_templates, [&](const std::string& name) {
                   return !room && plan.claims.contains(name);
                 })) {
        wire::AddNotJudged(room.error().message, noted.not_judged);
      }
      told = std::make_shared<const wire::PodNotes>(std::move(noted));
    }
    notes = told;
    pod.constraints = where;
    if (!whole) continue;
    pod.shape = *whole;
    pod.claims.clear();
    counted[i] = true;
  }
  return counted;
}

// Which GPUs of the node they get, nobody knows; and it was not they who chose among the nodes.
void TellOfClaims(const std::vector<bool>& counted, WhatIfAnswer& answer) {
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!counted[i]) continue;
    if (answer.pods[i].placement) {
      answer.pods[i].placement->grants.clear();
      continue;
    }
    WhyNot& why = answer.whys[answer.pods[i].why];
    const auto is_busy = [](const ReasonCount& count) {
      return count.reason == Reason::kGpusBusy || count.reason == Reason::kGpusHeld;
    };
    const bool of_gang = why.text.starts_with("its gang ");
    if (why.told && !of_gang && std::ranges::any_of(why.told->counts, is_busy)) {
      why = {"beside the other pods of this plan its claims get no devices", {}, why.pods};
    }
  }
}

}  // namespace

Result<std::string> MakePlan(const Live& live, std::string_view request, bool as_text,
                             const StopsPlan& stops) {
  std::vector<WaitingPod> listed = live.waiting.Everybody();
  Waiting waiting{live.extender.Now(), std::move(listed)};
  Extender::Moment& now = waiting.now;
  BERTH_TRY(wire::PlanRequest plan, wire::DecodePlan(request, live.pod_rules, live.node_rules,
                                                     PodsOf(waiting.listed, *now.snapshot)));
  // The places that its pods have are theirs.
  Transaction lifted(now.snapshot);
  for (const wire::KnownPod& pod : plan.planned) {
    lifted.Take(pod.uid, now.snapshot->names().Find(pod.node));
  }
  now.snapshot = lifted.now();
  if (plan.on_each_node.empty()) {
    BERTH_TRY_STATUS(wire::Expand(plan, *now.snapshot));
  } else {
    BERTH_TRY(const EditedNodes edited, Edit(now.snapshot, plan.nodes));
    BERTH_TRY_STATUS(wire::Expand(plan, *edited.snapshot));
  }
  if (plan.grow > 0) return MakeGrowth(live, plan, std::move(waiting), as_text, stops);
  wire::NoteSchedulers(live.extender.pending().Schedulers(), plan);
  // What devices nodes have that come, nobody knows.
  std::vector<bool> counted;
  if (plan.nodes.add.empty() && plan.nodes.remove.empty()) {
    counted = JudgeClaims(Inquiry(live.extender, now), *now.snapshot, stops, plan);
  }
  std::vector<std::string_view> held_back;
  for (const auto& notes : plan.notes) {
    held_back.push_back(notes == nullptr ? std::string_view() : notes->held_back);
  }
  if (plan.room) {
    for (std::size_t i = 0; i < held_back.size(); ++i) {
      if (plan.pods[i].refusal.empty()) plan.pods[i].refusal = held_back[i];
    }
    return MakeRoomPlan(live, plan, std::move(waiting), as_text, stops);
  }
  BERTH_TRY(WhatIfAnswer answer,
            Inquiry(live.extender, now).WouldPlace(plan.pods, plan.nodes, stops, held_back));
  TellOfClaims(counted, answer);
  return as_text ? wire::TextOf(plan, answer) : wire::EncodePlan(plan, answer);
}

http::HttpResponse PlanPage(const Live& live, OwnRequest& request) {
  if (const char* const why = WhyNoPlan(live.readiness)) return NotReadyAnswer(why, live.leader);
  const StopsPlan stops = [&live, &request]() -> const char* {
    if (request.waits && !request.waits()) return "the client of this plan has disconnected";
    return WhyNoPlan(live.readiness);
  };
  const bool is_large = request.body.size() > wire::kMostPlanBytes;
  const bool as_text = request.query == "text";
  auto answer = MakePlan(live, request.body, as_text, stops);
  if (!answer) {
    return Refusal(is_large ? 413 : StatusOf(answer.error().code), answer.error().message);
  }
  http::HttpResponse response;
  if (as_text) response.content_type = "text/plain; charset=utf-8";
  response.body = *std::move(answer);
  return response;
}

}  // namespace berth
