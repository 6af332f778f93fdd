// SPDX-License-Identifier: Apache-2.0
#include "server/why/explain_pages.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/state/snapshot.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_plan.h"
#include "server/extender/inquiry.h"
#include "server/why/waiting_whys.h"
#include "server/wire/node/node_gpu_facts.h"
#include "server/wire/pod/pod_object.h"

namespace berth {
namespace {

using http::HttpResponse;

constexpr std::size_t kMostHolders = 10;

// Of a pod that fits and waits, where kube-scheduler's words are not known.
constexpr const char* kOthers =
    "a check outside Berth blocks it (volumes, ports, spread, pod affinity), or kube-scheduler has "
    "not retried yet";

LinePart BlockedPart(std::string_view said, int rank) {
  if (said.empty()) return {kOthers, rank};
  // "0/4 nodes are available: REASONS. preemption: ..."
  constexpr std::string_view kCounted = "nodes are available: ";
  const std::size_t counted = said.find(kCounted);
  if (counted != said.npos) said.remove_prefix(counted + kCounted.size());
  said = Trimmed(said.substr(0, said.find("preemption: ")));
  while (said.ends_with('.')) said.remove_suffix(1);
  return {"kube-scheduler said last: " + Shortened(said, kLongestLine / 2), rank, "; ",
          "what kube-scheduler said blocks it, or it has not retried"};
}

template <class Report>
HttpResponse Answer(const Report& report, const std::string& query) {
  HttpResponse response;
  if (query == "text") {
    response.content_type = "text/plain; charset=utf-8";
    response.body = wire::TextOf(report);
  } else {
    response.body = wire::EncodeReport(report);
  }
  return response;
}

// What is behind the route: "NS/NAME" of "/debug/pods/NS/NAME".
std::string_view NameIn(std::string_view path) {
  for (int slashes = 0; slashes < 2 && !path.empty(); ++slashes) {
    path.remove_prefix(std::min(path.find('/', 1), path.size()));
  }
  return path.empty() ? path : path.substr(1);
}

std::optional<HttpResponse> NotReady(const Live& live) {
  const char* const why = live.readiness.reason();
  if (why == nullptr) return std::nullopt;
  return NotReadyAnswer(why, live.leader);
}

std::optional<Duration> AgeOf(const std::optional<WallTime>& created) {
  if (!created) return std::nullopt;
  return AgeAt(std::chrono::system_clock::now(), *created);
}

constexpr std::size_t kOfGang = 3;       // parts at least
constexpr std::size_t kLeastOfWhy = 80;  // bytes

// Why a gang waits: the last facts are left out first, a cure never, and the first is cut short.
void AddWhy(const std::string& why, std::string_view joint, std::vector<LinePart>& line) {
  std::size_t from = 0;
  for (int rank = 1; from < why.size() || rank == 1; ++rank) {
    const std::size_t end = std::min(why.find("; ", from), why.size());
    const bool is_cure = why.compare(from, 4, "set ") == 0;
    std::string fact = why.substr(from, end - from);
    std::string shorter = rank == 1 ? Shortened(fact, kLeastOfWhy) : "";
    line.push_back(
        {std::move(fact), is_cure ? 0 : rank, rank == 1 ? joint : "; ", std::move(shorter)});
    from = end + 2;
  }
}

// The one that has most; "": there is none.
std::string HoldsText(const GpuHolders& holders) {
  if (holders.most.empty()) return "";
  const GpuHolder& first = holders.most.front();
  return first.pod + " holds " + CountText(first.gpus, "GPU") + " on " + first.node;
}

// What matters more than all that is said of nodes: what keeps the pod apart from them. askers: the
// schedulers that ask. Empty: nothing does.
std::vector<LinePart> PartsBefore(const wire::PodReport& report,
                                  const std::set<std::string>& askers) {
  if (report.told.placed && report.told.placed->state == PodState::kBound) return {};
  if (!askers.empty() && !askers.contains(report.scheduler)) {
    const auto asked = [](const std::string& scheduler) {
      return "spec.schedulerName is \"" + scheduler +
             "\", and that scheduler has not asked this Berth about any pod";
    };
    return {{asked(report.scheduler), 0, "; ", asked(ShortName(report.scheduler, kShortName))}};
  }
  if (!report.held_back.empty())
    return {{report.held_back, 0, "; ", "scheduling gates hold it back"}};
  if (!report.gang || !wire::Waits(*report.gang)) return {};
  const GangView& gang = *report.gang;
  const bool is_beyond = (gang.state == "planned" || gang.state == "committing") &&
                         !report.told.placed && gang.planned + gang.placed >= gang.minimum;
  const auto of_gang = [&gang, is_beyond](const std::string& name) {
    if (is_beyond) return "its gang" + name + " starts without it";
    return "its gang" + name + (gang.state == "begun" ? " has " : " is ") + std::string(gang.state);
  };
  std::vector<LinePart> parts = {{of_gang(" " + gang.id.full_name()), 0, "; ", of_gang("")}};
  AddWhy(gang.why, ": ", parts);
  parts.push_back({HoldsText(report.holders), 2});
  return parts;
}

// The answer in one line.
std::string SentenceOf(const wire::PodReport& report, const std::set<std::string>& askers) {
  const PodExplanation& told = report.told;
  std::vector<LinePart> line = PartsBefore(report, askers);
  const std::size_t before = line.size();
  for (LinePart part : told.line) {
    if (before > 0) part.rank += 2;
    line.push_back(std::move(part));
  }
  if (before >= kOfGang && line.size() > before) line[before].joint = "; alone, it ";
  const bool fits = told.fitting + told.by_claim > told.kept;
  if (before == 0 && !report.gang && fits && !told.placed) {
    if (!report.not_bound.empty()) {
      line.push_back({report.not_bound});
    } else if (report.unschedulable) {
      line.push_back(BlockedPart(report.scheduler_said, 0));
    }
  }
  return LineOf(line, RoomBehind(told.pod.full_name()));
}

// of: one of its pods that wait; nullptr: none does.
std::string SentenceOf(const GangView& gang, const wire::PodReport* of) {
  const std::int64_t there = gang.placed + gang.waiting;
  // Nobody says how many it needs: why it waits says that; or each pod may start alone.
  const bool unknown = gang.minimum <= 0 || gang.state == "alone";
  const std::string exist = unknown ? CountText(there, "pod") + (there == 1 ? " exists" : " exist")
                            : there <= gang.minimum
                                ? std::to_string(there) + " of " + CountText(gang.minimum, "pod") +
                                      " that must start together exist"
                                : CountText(there, "pod") + " exist, and " +
                                      std::to_string(gang.minimum) + " must start together";
  std::vector<LinePart> line = {{std::string(gang.state)}};
  // Where all are there that is no news, and takes the room of what is.
  const bool waits = gang.state == "waiting" || gang.state == "begun";
  const bool is_news = !waits || gang.why.empty() || there < gang.minimum;
  // What a gang that gathers says first is how many exist.
  std::string why = gang.why;
  const std::string first = std::to_string(there) + " of " + CountText(gang.minimum, "pod");
  if (why.starts_with(first + " exist")) why.erase(0, first.size() + std::size(" exist; ") - 1);
  if (is_news)
    line.push_back({exist, why.empty() ? 0 : 2, ": ", unknown ? exist : first + " exist"});
  if (!why.empty()) AddWhy(why, is_news ? "; " : ": ", line);
  if (of != nullptr) line.push_back({HoldsText(of->holders), 2});
  if (of != nullptr && gang.state == "planned" && of->unschedulable) {
    line.push_back(BlockedPart(of->scheduler_said, 2));
  }
  return LineOf(line, RoomBehind(gang.id.text()));
}

void TakeWaiting(const WaitingPod& waiting, wire::PodReport& report) {
  report.held_back = waiting.held_back;
  report.unschedulable = waiting.unschedulable;
  report.scheduler_said = waiting.scheduler_said;
  report.age = AgeOf(waiting.created);
}

PodSaid SaidOf(const Live& live, const WaitingPod& waiting) {
  PodSaid said{.nominated = waiting.nominated, .replica_set = waiting.replica_set};
  const auto room = live.rooms == nullptr ? std::nullopt : live.rooms->Of(waiting.pod->id.uid);
  if (!room) return said;
  said.room = room->node;
  for (const PodId& victim : room->victims) said.evicted.push_back(victim.full_name());
  return said;
}

wire::PodReport ReportOn(const Live& live, const Extender::Moment& now, const PodRequest& pod,
                         const std::optional<WaitingPod>& waiting) {
  PodSaid said;
  if (waiting) said = SaidOf(live, *waiting);
  PodRequest asked = pod;
  if (asked.refusal.empty()) asked.refusal = live.gangs.Apart(pod);
  wire::PodReport report{.told = Inquiry(live.extender, now).Explain(asked, said), .sentence = {}};
  for (NearNodeFacts& at : report.told.nearest) {
    if (at.near.reason != Reason::kNoMig) continue;
    const std::string cure = wire::CureOfNoMig(at.facts.spec());
    if (!cure.empty() && at.near.lack == PredicateOf(Reason::kNoMig)) at.near.lack += "; " + cure;
  }
  report.scheduler = pod.scheduler;
  report.not_bound = live.extender.NotBound(pod.id);
  if (asked.refusal.empty()) {
    report.gang = live.gangs.View(pod.gang.id, std::chrono::steady_clock::now());
  }
  if (waiting) TakeWaiting(*waiting, report);
  if (waiting && report.gang) AddRollout(*waiting, *now.snapshot, *report.gang);
  // Whose end would help: not where nothing does, and on nodes of the member that has no place.
  const bool lacks_room = report.gang && wire::Waits(*report.gang) && report.gang->planned == 0 &&
                          report.gang->missing() <= 0 && !report.gang->never;
  if (lacks_room && !report.told.placed) {
    const auto lacking = report.gang->lacks.empty()
                             ? std::nullopt
                             : live.waiting.FindNamed(pod.id.namespace_name, report.gang->lacks);
    report.holders = HoldersFor(*now.snapshot, lacking ? *lacking->pod : pod, kMostHolders);
  }
  report.sentence = SentenceOf(report, live.extender.pending().Schedulers());
  return report;
}

// Of a pod that Berth places nowhere: the resource that it may have misspelt, else whose it is.
std::vector<LinePart> LineOfOther(const PodRequest& pod, const Extender::Moment& now) {
  for (const OtherResource& asked : pod.others == nullptr ? OtherResources() : *pod.others) {
    const std::string meant = MeantBy(asked.name, *now.snapshot);
    if (meant.empty()) continue;
    return {{"Berth does not know the resource " + Shortened(asked.name, 63) + ", did you mean " +
             meant + "?"}};
  }
  return {{OfSchedulerAlone(pod)}};
}

// Of a pod that is kube-scheduler's alone; what it asks for beside GPUs by claims is not known.
wire::PodReport ReportOnOther(const Live& live, const Extender::Moment& now,
                              const WaitingPod& waiting) {
  const PodRequest& pod = *waiting.pod;
  wire::PodReport report{.told = {}, .sentence = {}};
  report.told.pod = pod.id;
  report.told.nodes = now.snapshot->size();
  const auto claiming = live.waiting.FindClaiming(pod.id.uid);
  if (!waiting.held_back.starts_with(wire::kBeingDeleted))
    report.told.line = LineOfOther(claiming ? *claiming->pod : pod, now);
  if (claiming) {
    const Inquiry inquiry(live.extender, now);
    auto room = inquiry.RoomOfClaims(*claiming->pod);
    if (room) report.told = inquiry.ExplainClaims(*claiming->pod, *room);
    if (!room) report.told.line.push_back({room.error().message, 1});
  }
  report.told.sentence = LineOf(report.told.line, RoomBehind(pod.id.full_name()));
  report.scheduler = pod.scheduler;
  TakeWaiting(waiting, report);
  report.sentence = SentenceOf(report, live.extender.pending().Schedulers());
  return report;
}

// What takes longer than the rest: only where a person asks about this pod or gang.
void AdviseRoomIn(wire::PodReport& report, const Live& live, const Extender::Moment& now,
                  const WaitingPod& waiting) {
  const bool gang_waits = report.gang && wire::Waits(*report.gang);
  if (gang_waits || report.told.fitting + report.told.by_claim == 0) {
    report.room = AdviseRoom(live, now, waiting);
  }
  auto& preemption = report.told.preemption;
  if (!preemption) return;
  if (auto all = Inquiry(live.extender, now).GangPreemption(*waiting.pod))
    preemption = std::move(all);
}

// The pods of the gang that have a place; of nodes that the snapshot does not know, those of now.
PodRecords PlacedMembers(const Live& live, const Snapshot& snapshot, const GangId& gang) {
  PodRecords placed;
  snapshot.ForEachPod([&](const auto& pod, NodeIndex) {
    if (pod->pod.gang.id == gang) placed.push_back(pod);
  });
  for (const auto& pod : live.state.GangPods(gang).pods) {
    if (snapshot.names().Find(pod->placement.node) == kNoNode) placed.push_back(pod);
  }
  return placed;
}

// All members at that moment, and the first of those that wait. listed: before it.
std::optional<WaitingPod> ListMembers(std::span<const WaitingPod> listed, const PodRecords& placed,
                                      const GangId& gang, const std::string& lacks,
                                      std::vector<wire::GangMemberReport>& members) {
  std::map<std::string, wire::GangMemberReport> by_name;
  for (const auto& pod : placed) {
    const std::string name = pod->pod.id.full_name();
    by_name[name] = {name, pod->leaving ? "ending" : StateOf(pod->state), pod->placement.node};
  }
  std::optional<WaitingPod> first;
  for (const WaitingPod& waiting : listed) {
    if (waiting.pod->gang.id != gang) continue;
    const std::string name = waiting.pod->id.full_name();
    wire::GangMemberReport report = {name, waiting.gated() ? "gated" : "waiting"};
    const bool waits = by_name.try_emplace(name, std::move(report)).second;
    const bool tells = !first || waiting.pod->id.name == lacks;
    if (waits && !waiting.gated() && tells) first = waiting;
  }
  for (auto& [name, member] : by_name) members.push_back(std::move(member));
  return first;
}

HttpResponse UsePage(const Live& live, Owner by, const std::string& path,
                     const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  const std::string name(NameIn(path));
  const auto snapshot = live.extender.Current();
  return Answer(wire::UseReport{.by = by, .name = name, .nodes = UseByNode(*snapshot, by, name)},
                query);
}

// NodeReport::odd_driver. "": it has what most have, or says none.
std::string OddDriver(const NodeSpec& spec, std::span<const ModelSummary> models) {
  const auto model = std::ranges::find(models, spec.gpu_model, &ModelSummary::model);
  const auto has = VersionOf(spec.labels, Versioned::kDriver);
  if (!has || model == models.end()) return "";
  const auto most = std::ranges::max_element(model->drivers, {}, &std::pair<Version, int>::second);
  if (most->first == *has) return "";
  return "driver " + TextOf(*has) + ", other nodes with this GPU model have " + TextOf(most->first);
}

// "4 pods with 8 GPUs": of the members that wait.
std::string AsksOf(const Live& live, const GangView& gang) {
  std::set<std::string> asks;
  for (const WaitingPod& pod : live.waiting.WaitingMembers(gang.id)) {
    asks.insert(AskText(pod.pod->shape));
  }
  return CountText(gang.waiting, "pod") + " with " + Join(asks, " or ");
}

}  // namespace

wire::PodReport ReportOn(const Live& live, const Extender::Moment& now, const WaitingPod& waiting) {
  return ReportOn(live, now, *waiting.pod, waiting);
}

HttpResponse ExplainPodPage(const Live& live, const std::string& path, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  const std::string_view full = NameIn(path);
  const std::size_t slash = full.find('/');
  if (slash == full.npos || full.find('/', slash + 1) != full.npos) {
    return http::ErrorResponse(404, "want NAMESPACE/NAME, got " + std::string(full.substr(0, 300)));
  }
  const std::string_view space = full.substr(0, slash), name = full.substr(slash + 1);
  const auto waiting = live.waiting.FindNamed(space, name);
  const Extender::Moment now = live.extender.Now();  // after the list (waiting_pods.h)
  if (const auto placed = FindOnNodes(*now.snapshot, space, name)) {
    return Answer(ReportOn(live, now, placed->pod, std::nullopt), query);
  }
  if (waiting) {
    wire::PodReport report = ReportOn(live, now, *waiting->pod, waiting);
    AdviseRoomIn(report, live, now, *waiting);
    return Answer(report, query);
  }
  if (const auto other = live.waiting.FindOther(space, name)) {
    return Answer(ReportOnOther(live, now, *other), query);
  }
  for (const auto& lost : live.state.PodsOnUnknownNodes()) {
    if (lost->pod.id.name == name && lost->pod.id.namespace_name == space)
      return http::ErrorResponse(404, "pod " + std::string(full) + " is on node " +
                                          lost->placement.node + ", which is not known here");
  }
  if (live.shows_waiting) {
    return http::ErrorResponse(
        404, "pod " + std::string(full) + " is not known: it does not exist, or it has ended");
  }
  if (const auto asked = live.extender.pending().FindNamed(space, name)) {
    return Answer(ReportOn(live, now, *asked, std::nullopt), query);
  }
  return http::ErrorResponse(404, "pod " + std::string(full) +
                                      " is not known: it does not exist, has ended, or waits "
                                      "and asks for no GPU");
}

HttpResponse FindPodsPage(const Live& live, const std::string&, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  if (query.empty()) return http::ErrorResponse(400, "want /debug/pods?TEXT, a part of a name");
  wire::FoundPods found;
  std::string part = query;  // clients may write "/" as %2F
  for (std::size_t at; (at = std::min(part.find("%2F"), part.find("%2f"))) != part.npos;) {
    part.replace(at, 3, "/");
  }
  live.extender.Current()->ForEachPod([&](const auto& pod, NodeIndex) {
    std::string name = pod->pod.id.full_name();
    if (name.find(part) == name.npos) return;
    if (found.pods.size() == found.kMost) {
      ++found.beyond;
    } else {
      found.pods.emplace_back(std::move(name), pod->placement.node);
    }
  });
  HttpResponse response;
  response.body = wire::EncodeReport(found);
  return response;
}

HttpResponse ExplainNodePage(const Live& live, const std::string& path, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  const std::string_view name = NameIn(path);
  const Extender::Moment now = live.extender.Now();
  const NodeIndex node = now.snapshot->names().Find(name);
  if (node == kNoNode) {
    return http::ErrorResponse(404, "node " + std::string(name) + " is not known");
  }
  NodeReport report = ReportOf(now.snapshot->node(node));
  report.kept_for = KeptOn(now.reservations, *now.snapshot, node);
  report.odd_driver = OddDriver(report.spec(), SummarizeModels(*now.snapshot));
  return Answer(report, query);
}

HttpResponse ExplainGangPage(const Live& live, const std::string& path, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  const std::string_view full = NameIn(path);
  const std::vector<WaitingPod> listed = live.waiting.Everybody();
  const Extender::Moment now = live.extender.Now();  // after the list (waiting_pods.h)
  std::optional<GangView> found = FindGang(live, *now.snapshot, listed, full);
  if (!found) return http::ErrorResponse(404, "gang " + std::string(full) + " is not known");
  wire::GangReport report{.gang = *std::move(found), .members = {}, .sentence = {}};
  const GangId& id = report.gang.id;
  const PodRecords placed = PlacedMembers(live, *now.snapshot, id);
  const auto first = ListMembers(listed, placed, id, report.gang.lacks, report.members);
  if (first) AddRollout(*first, *now.snapshot, report.gang);
  for (const auto& pod : placed) {
    if (pod->leaving && report.gang.missing() > 0) {
      report.gang.why += "; " + pod->pod.id.name + " is ending on " + pod->placement.node;
      break;
    }
  }
  if (!placed.empty()) {
    report.wishes = WishTexts(*now.snapshot, *live.domains.Of(now.snapshot), live.domains.levels(),
                              placed.front()->pod);
  }
  if (first) {
    report.waiting = ReportOn(live, now, *first->pod, first);
    AdviseRoomIn(*report.waiting, live, now, *first);
  }
  report.sentence = SentenceOf(report.gang, report.waiting ? &*report.waiting : nullptr);
  return Answer(report, query);
}

HttpResponse NamespacePage(const Live& live, const std::string& path, const std::string& query) {
  return UsePage(live, Owner::kNamespace, path, query);
}

HttpResponse ClassPage(const Live& live, const std::string& path, const std::string& query) {
  return UsePage(live, Owner::kWorkloadClass, path, query);
}

HttpResponse TopPage(const Live& live, const std::string&, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  std::vector<WaitingPod> listed = live.waiting.Everybody();
  const auto snapshot = live.extender.Current();  // after the list (waiting_pods.h)
  wire::TopReport report{.models = SummarizeModels(*snapshot, false),
                         .waiting = WaitingClasses(StillWaiting(std::move(listed), *snapshot),
                                                   std::chrono::system_clock::now())};
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const GpusBeside& beside = snapshot->node(i).spec().beside;
    int rest = beside.in_slices;
    if (rest == 0) continue;
    for (const auto& [what, count] : beside.of_drivers) {
      report.by_claims[what] += count;
      rest -= count;
    }
    if (rest > 0) report.by_claims["GPUs"] += rest;
  }
  return Answer(report, query);
}

HttpResponse WaitingPage(const Live& live, const std::string&, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  std::vector<WaitingPod> line = live.waiting.Everybody();
  const Extender::Moment now = live.extender.Now();  // after the list (waiting_pods.h)
  line = StillWaiting(std::move(line), *now.snapshot);
  std::ranges::stable_sort(line, ComesBefore, &WaitingPod::place);
  std::stable_partition(line.begin(), line.end(),
                        [](const WaitingPod& pod) { return !pod.gated(); });
  wire::WaitingReport report;
  std::set<GangId> gangs;
  for (const WaitingPod& waiting : line) {
    const PodRequest& pod = *waiting.pod;
    auto gang = live.gangs.View(pod.gang.id, std::chrono::steady_clock::now());
    if (gang && !wire::Waits(*gang)) gang.reset();
    if (gang && !gangs.insert(gang->id).second) continue;  // it has its line
    if (report.units.size() == report.kMost) {
      ++report.beyond;
      continue;
    }
    if (gang) AddRollout(waiting, *now.snapshot, *gang);
    const wire::PodReport report_of = ReportOn(live, now, waiting);
    report.units.push_back({.name = gang ? gang->id.full_name() : pod.id.full_name(),
                            .is_gang = gang.has_value(),
                            .asks = gang                  ? AsksOf(live, *gang)
                                    : pod.refusal.empty() ? AskText(pod.shape)
                                                          : "(must be changed)",
                            .age = AgeOf(waiting.created),
                            .sentence = gang ? SentenceOf(*gang, &report_of) : report_of.sentence});
  }
  return Answer(report, query);
}

HttpResponse NodesPage(const Live& live, const std::string&, const std::string& query) {
  if (auto unready = NotReady(live)) return *std::move(unready);
  const Extender::Moment now = live.extender.Now();
  const std::vector<ModelSummary> models = SummarizeModels(*now.snapshot);
  wire::NodesReport report;
  for (NodeIndex i = 0; i < now.snapshot->size(); ++i) {
    const NodeSpec& spec = now.snapshot->node(i).spec();
    if (!IsGpuNode(spec)) continue;
    ++report.gpu_nodes;
    NodeReport node = ReportOf(now.snapshot->node(i));
    node.kept_for = KeptOn(now.reservations, *now.snapshot, i);
    node.odd_driver = OddDriver(spec, models);
    std::vector<std::string> notes = wire::NotesOn(node);
    if (!notes.empty()) report.rows.push_back({spec.name, spec.gpu_model, std::move(notes)});
  }
  return Answer(report, query);
}

}  // namespace berth
