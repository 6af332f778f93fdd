// SPDX-License-Identifier: Apache-2.0
//
// The reports of explain_json.h as text.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cluster/node/mig_use.h"
#include "scoring/explain/claim_words.h"
#include "scoring/explain/other_limits.h"
#include "scoring/mig/mig_tables.h"
#include "server/why/explain_json.h"

namespace berth::wire {
namespace {

using Row = std::vector<std::string>;

// Columns are as wide as their longest cell, two spaces between them.
std::string TableOf(const std::vector<Row>& rows, std::string_view indent = "  ") {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += OnOneLine(row[i]);
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// "3d4h", "5m12s", "8s"; "-": it is not known.
std::string AgeText(const std::optional<Duration>& age) {
  if (!age) return "-";
  const std::int64_t seconds =
      std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(*age).count(), 0);
  constexpr std::array<std::pair<std::int64_t, char>, 4> kUnits = {
      {{86'400, 'd'}, {3'600, 'h'}, {60, 'm'}, {1, 's'}}};
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    const auto [size, unit] = kUnits[i];
    const auto [next_size, next_unit] = kUnits[i + 1];
    if (seconds < size) continue;
    return std::to_string(seconds / size) + unit + std::to_string(seconds % size / next_size) +
           next_unit;
  }
  return std::to_string(seconds) + "s";
}

// "12 of 16 on 4 GPUs": of GPUs with several users, which are in no other column.
std::string ReplicasText(const ModelSummary& model) {
  if (model.places == 0) return "-";
  std::string text = std::to_string(model.free_places) + " of " + std::to_string(model.places);
  return model.shared_gpus == 0 ? text : text + " on " + CountText(model.shared_gpus, "GPU");
}

std::string ModelsTable(const std::vector<ModelSummary>& models) {
  std::vector<Row> rows = {{"MODEL", "NODES", "GPUS", "ALLOCATED", "IDLE", "LARGEST HOLE", "FIT 1",
                            "FIT 2", "FIT 4", "FIT 8", "UNHEALTHY", "CLOSED", "MIG GPUS",
                            "FREE REPLICAS"}};
  for (const ModelSummary& model : models) {
    const std::string hole = model.largest_hole == 0
                                 ? "0"
                                 : std::to_string(model.largest_hole) + " on " + model.hole_node;
    Row row = {model.model.empty() ? "(unknown)" : model.model,
               std::to_string(model.nodes),
               std::to_string(model.gpus),
               CpuText(model.allocated_milli),
               std::to_string(model.idle),
               hole};
    for (const std::int64_t fit : model.fit) row.push_back(std::to_string(fit));
    row.push_back(std::to_string(model.out_of_order));
    row.push_back(std::to_string(model.closed));
    row.push_back(std::to_string(model.mig_gpus));
    row.push_back(ReplicasText(model));
    rows.push_back(std::move(row));
  }
  return TableOf(rows);
}

// A line about a node.
struct NodeLine {
  std::string text;
  bool is_note = false;  // the node is not simply fine
};

// "GPU 0,1,3: idle", "GPU 2: held by ns/a": GPUs of one state on one line.
std::vector<NodeLine> GpusLines(const NodeReport& facts) {
  std::vector<std::pair<std::string, std::string>> lines;  // what they are -> which
  const bool offers_none = OffersNoneOfItsGpus(facts.spec());
  const bool changes = facts.spec().mig_trouble() == MigTrouble::kChanging;  // without a plugin
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    const GpuFree& free = facts.node.gpus()[i];
    const bool open = facts.node.IsOpen(static_cast<int>(i)),
               healthy = facts.spec().gpus[i].healthy, foreign = facts.spec().gpus[i].foreign;
    const std::vector<std::string>& held_by = facts.gpus[i].held_by;
    std::string is = healthy                            ? ""
                     : foreign                          ? "given by another scheduler"
                     : facts.spec().agent_lacks.empty() ? "unhealthy"
                                                        : "not offered";
    if (healthy && held_by.empty()) {
      is = open                     ? "idle"
           : offers_none || changes ? "not offered"
                                    : "closed in place of an unhealthy one";
      if (!free.idle()) is = "used by a pod whose GPUs are unknown";
    }
    if (!held_by.empty()) is += (is.empty() ? "held by " : "; held by ") + Join(held_by, ", ");
    const bool has_memory = free.memory_mib > 0 || facts.spec().gpus[i].memory_mib == 0;
    if (open && has_memory && !free.idle() && free.milli > 0) {
      is += "; " + std::to_string(free.milli) + " thousandths free";
    }
    const auto same = std::ranges::find(lines, is, &std::pair<std::string, std::string>::first);
    if (same == lines.end()) {
      lines.emplace_back(is, std::to_string(i));
    } else {
      same->second += "," + std::to_string(i);
    }
  }
  std::vector<NodeLine> told;
  for (const auto& [is, which] : lines) {
    const bool is_note = is.starts_with("unhealthy") || is.starts_with("closed");
    told.push_back({"GPU " + which + ": " + is, is_note});
  }
  if (const GpuPlaces& places = facts.spec().places; places.count > 0) {
    std::string text = std::to_string(facts.free_places) + " of " +
                       CountText(places.count, "GPU replica") + " free";
    if (places.foreign) text += ", given by another scheduler";
    for (const int gpu : places.unwell) text += ", GPU " + std::to_string(gpu) + " is unhealthy";
    if (facts.node.claims() != nullptr) {
      for (const ClaimedGpu& claimed : *facts.node.claims()) {
        ForEachGpu(PlacesHeldByClaims(places, std::span(&claimed, 1)), [&](int gpu) {
          text += ", GPU " + std::to_string(gpu) + " is held by claim " + claimed.claim;
        });
      }
    }
    const int withdrawn =
        facts.spec().missing - places.each() * static_cast<int>(places.unwell.size());
    if (withdrawn > 0 && !offers_none)
      text += ", " + std::to_string(withdrawn) + " withdrawn by the device plugin";
    told.push_back({std::move(text), !places.unwell.empty() || withdrawn > 0});
  }
  if (offers_none) {
    told.push_back(
        {LackText(facts.node, {}, Reason::kNoGpuOffered), facts.spec().beside.in_slices == 0});
  } else if (facts.missing > 0 && !changes) {
    told.push_back({CountText(facts.missing, "GPU") + (facts.missing == 1 ? " is" : " are") +
                        " unhealthy; nobody says which",
                    true});
  }
  for (std::string& text : DevicesBesideOn(facts.node)) {
    const bool has_none = text.starts_with("0 of 0 ");
    told.push_back({std::move(text), has_none});
  }
  for (const auto& [what, count] : facts.spec().beside.of_drivers)
    told.push_back({std::to_string(count) + " " + what});
  for (std::string& text : PartsHeldOn(facts.node)) told.push_back({std::move(text)});
  for (const MigFree& free : facts.mig) {
    told.push_back({"MIG " + free.profile + ": " + std::to_string(free.free) +
                    (facts.spec().mig->dynamic ? " can be created" : " free")});
  }
  return told;
}

std::string ReasonsText(const PodExplanation& told) {
  std::vector<Row> rows;
  for (const ReasonCount& count : told.counts) {
    const std::string text(PredicateOf(count.reason));
    rows.push_back(
        {std::to_string(count.nodes), text.empty() ? "not tried: the pod must be changed" : text});
  }
  if (rows.empty()) return "";
  return "Nodes by first reason:\n" + TableOf(rows);
}

std::string SchedulerText(const SchedulerCounts& counts) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < counts.by_check.size(); ++i) {
    if (counts.by_check[i] == 0) continue;
    rows.push_back({std::to_string(counts.by_check[i]), SchedulerCounts::kChecks[i].second});
  }
  if (rows.empty()) return "";
  return "Nodes that kube-scheduler's own filters reject, " + std::to_string(counts.any) +
         " in total:\n" + TableOf(rows);
}

std::string ClosedText(const ClosedNodes& closed) {
  if (closed.nodes == 0) return "";
  std::string text = "Closed to the pod: " + closed.text;
  if (closed.would_take > 0) {
    text += "; " + std::to_string(closed.would_take) + " of them would have room for it now";
    text += (closed.would_take == 1 ? ": " : ", for example ") + closed.taker;
  }
  return text + "\n";
}

std::string NearestText(const std::vector<NearNodeFacts>& nearest, bool by_itself) {
  std::string text;
  for (const NearNodeFacts& at : nearest) {
    text += "  " + at.facts.name + ": " + at.near.lack + "\n";
    for (const WayIn& way : at.near.ways) {
      text += "    fits " + way.text + "\n";
      if (way.pods.size() > kMostEnding) text += "      all: " + Join(way.pods, ", ") + "\n";
    }
    for (const NodeLine& line : GpusLines(at.facts)) text += "    " + line.text + "\n";
  }
  if (text.empty()) return "";
  return "Nearest nodes" + std::string(by_itself ? ", for this pod alone" : "") + ":\n" + text;
}

std::string BestText(const PodExplanation& told) {
  if (told.best.empty()) return "";
  std::vector<Row> rows;
  for (const ScoredNode& scored : told.best) {
    Row row = {std::to_string(scored.place), scored.placement.node};
    for (const ScorePart& part : scored.parts) {
      row.push_back(part.scorer + " " + std::to_string(part.score) +
                    (part.weight == 1 ? "" : " x" + std::to_string(part.weight)));
    }
    if (!scored.behind.empty()) row.push_back("behind: " + scored.behind);
    rows.push_back(std::move(row));
  }
  return "Nodes that fit now, best first (" + std::to_string(told.fitting) + "):\n" + TableOf(rows);
}

// What the first line left out or cut.
std::string DetailLines(const PodReport& report) {
  const PodExplanation& told = report.told;
  std::string text;
  const auto add = [&](const char* what, const std::string& said) {
    const std::string whole = OnOneLine(said);
    if (report.sentence.find(whole) == std::string::npos) text += what + whole + "\n";
  };
  if (told.pod.full_name().size() > kLongestName) add("Pod: ", told.pod.full_name());
  add("The pod must be changed: ", told.refusal);
  add("Scheduler: ", report.scheduler);  // empty: the default one
  add("Devices: ", told.devices);
  if (!told.placed && told.shape.wants_gpu())
    text += "Asks for: " + AskText(told.shape, told.in_units) + "\n";
  return text;
}

std::string GangLine(const GangView& gang) {
  std::string text = "Gang " + gang.id.text() + ": " + std::string(gang.state) + ", " +
                     std::to_string(gang.placed) + " placed, " + std::to_string(gang.waiting) +
                     " waiting, " + std::to_string(gang.minimum) + " must start together";
  if (!gang.why.empty()) text += "; " + gang.why;
  return OnOneLine(std::move(text)) + "\n";
}

std::string HoldersText(const GpuHolders& holders) {
  if (holders.most.empty()) return "";
  std::vector<Row> rows;
  for (const GpuHolder& holder : holders.most) {
    rows.push_back({holder.pod, CountText(holder.gpus, "GPU"), holder.node});
  }
  const auto more = static_cast<std::int64_t>(holders.pods - holders.most.size());
  return "GPUs that the gang may use are held by:\n" + TableOf(rows) +
         (more > 0 ? "  and " + CountText(more, "other pod") + "\n" : "");
}

std::string ClassLine(const std::vector<std::string>& classes) {
  if (classes.empty()) return "";
  std::string text = "Workload class: " + classes.front();
  for (std::size_t i = 1; i < classes.size(); ++i) {
    text += (i == 1 ? "; it takes precedence over " : ", ") + classes[i] +
            (i + 1 == classes.size() ? ", which also match the pod" : "");
  }
  return text + "\n";
}

// "condition XIDErrors=True", "annotation berth.dev/gpu-health", "status of pods".
std::string NamedBy(const std::string& condition) {
  return (condition.find('=') == std::string::npos ? "" : "condition ") + condition;
}

// What it has; behind it, what it was planned with, if that is something else.
std::string DevicesOf(const NodeTenant& tenant) {
  const Placement& has = tenant.record->placement;
  std::string devices = ListDevices({tenant.grants, has.mig, has.places_on}, tenant.places());
  if (tenant.gpus_unknown) devices += devices.empty() ? "unknown" : ", others unknown";
  if (const std::string others = DevicesBesideOf(tenant.record->pod); !others.empty())
    devices += (devices.empty() ? "" : ", ") + others;
  const PodDevices* const plan = tenant.planned();
  if (plan == nullptr) return devices;
  return devices + ", planned " + ListDevices(*plan, std::ssize(plan->places_on));
}

// Why the whole node gets no pods with GPUs, and who says which GPUs are unhealthy.
std::vector<LinePart> StateOf(const NodeSpec& spec) {
  return {{spec.ready ? "" : "not ready", 0, ", "},
          {spec.cordoned() ? "cordoned" : "", 0, ", "},
          {spec.gpu_condition.empty() ? "" : "condition " + spec.gpu_condition, 1, ", "},
          {spec.named_gpus_condition.empty()
               ? ""
               : "unhealthy GPUs by " + NamedBy(spec.named_gpus_condition),
           1, ", "},
          {spec.refuses_gpu_pods ? "its kubelet rejected the last GPU pods" : "", 0, ", "}};
}

std::vector<NodeLine> LinesOf(const NodeReport& node) {
  const NodeSpec& spec = node.spec();
  std::vector<NodeLine> lines;
  const bool in_slices = spec.beside.in_slices > 0;
  if (spec.gpus_to_come || (in_slices && !spec.has_gpus())) {
    lines.push_back({LackText(node.node, {}, Reason::kNoGpu), !in_slices});
  } else if (!spec.gpu_contradiction.empty()) {
    lines.push_back({spec.gpu_contradiction, true});
  }
  if (const MigTrouble trouble = spec.mig_trouble(); trouble != MigTrouble::kNone) {
    lines.push_back({LackText(node.node, {}, ReasonOf(trouble)), true});
  }
  if (!spec.part_agent.empty() && !spec.part_agent_ready) {
    lines.push_back({"agent " + spec.part_agent +
                         " is not ready, as its condition says: the node takes no GPU shares",
                     true});
  }
  for (const std::string& text : {spec.agent_lacks, spec.passed_over}) {
    if (!text.empty() && (lines.empty() || lines.front().text != text))
      lines.push_back({text, true});
  }
  if (!node.odd_driver.empty()) lines.push_back({node.odd_driver, true});
  for (const std::string& ask : node.refused_asks) {
    lines.push_back({"its kubelet rejected the last pods that ask for " + ask, true});
  }
  for (const KeptFor& kept : node.kept_for) lines.push_back({berth::TextOf(kept), true});
  std::set<std::string> models(spec.gpu_models.begin(), spec.gpu_models.end());
  models.erase("");
  if (models.size() > 1) lines.push_back({"GPUs of several models: " + Join(models, ", "), true});
  if (!spec.by_claims.empty())
    lines.push_back({"kube-scheduler gives pods its GPUs by DRA, the first that are free"});
  if (spec.carries_out) lines.push_back({"an agent gives containers the GPUs that Berth chooses"});
  if (spec.topology_manager.policy != TopologyPolicy::kNone) {
    lines.push_back({"Topology Manager policy " +
                     std::string(NameOf(spec.topology_manager.policy)) +
                     (spec.topology_manager.by_pod ? ", scope pod" : "")});
  }
  std::string text = "CPU " + CpuText(node.node.free_cpu_milli()) + " of " +
                     CpuText(spec.cpu_milli) + " free, memory " +
                     MemoryText(node.node.free_memory_bytes()) + " of " +
                     MemoryText(spec.memory_bytes) + " free";
  if (spec.ephemeral_bytes) {
    text += ", ephemeral storage " + MemoryText(node.node.free_ephemeral_bytes()) + " of " +
            MemoryText(*spec.ephemeral_bytes) + " free";
  }
  lines.push_back({std::move(text)});
  for (const std::vector<Taint>* const taints : {&spec.taints, &spec.soft_taints}) {
    for (const Taint& taint : *taints)
      lines.push_back({"taint " + berth::TextOf(taint), PassesByItself(taint) && spec.ready});
  }
  if (!spec.traits.empty()) lines.push_back({"traits " + Join(spec.traits, ", ")});
  std::ranges::move(GpusLines(node), std::back_inserter(lines));
  if (node.pods_on_other_gpus > 0) {
    lines.push_back({CountText(node.pods_on_other_gpus, "pod") +
                         (node.pods_on_other_gpus == 1 ? " has" : " have") +
                         " other GPUs than planned",
                     true});
  }
  return lines;
}

}  // namespace

std::string TextOf(const PodReport& report) {
  const PodExplanation& told = report.told;
  std::string text;
  const bool says_it = report.sentence.find("kube-scheduler said last: ") != std::string::npos;
  if (!report.scheduler_said.empty() && !told.placed && !says_it) {
    text += "kube-scheduler said: " + report.scheduler_said + "\n";
  }
  text += ShortName(told.pod.full_name(), kLongestName) + ": " + report.sentence + "\n";
  text += DetailLines(report);
  if (report.age) text += "Age: " + AgeText(report.age) + "\n";
  if (report.gang) text += GangLine(*report.gang);
  text += HoldersText(report.holders);
  text += ClassLine(told.classes);
  if (!told.advice.empty()) text += "Advice: " + told.advice + "\n";
  if (told.placed) return text + BestText(told);
  text += ReasonsText(told) + ClosedText(told.closed) + SchedulerText(told.scheduler);
  text += BestText(told);
  text += NearestText(told.nearest, report.gang.has_value());
  if (told.rollout) {
    text += "Rolling update: the new pod waits for the old one, " + told.rollout->old_pod + " on " +
            told.rollout->node + ", which waits for the new one. In Deployment " +
            told.rollout->deployment + " set maxSurge: 0 and maxUnavailable: 1.\n";
  }
  if (told.preemption) text += "Preemption: " + told.preemption->text + "\n";
  if (report.room) text += "Room: " + berth::TextOf(*report.room) + "\n";
  for (const NodeAdvice& at : told.recuts) {
    text += "Repartition: idle node " + at.node + " to " + at.advice.config + "\n";
  }
  if (!told.models.empty()) text += "GPU models:\n" + ModelsTable(told.models);
  return text;
}

std::vector<std::string> NotesOn(const NodeReport& node) {
  std::vector<std::string> notes;
  for (const LinePart& part : StateOf(node.spec())) {
    if (!part.text.empty()) notes.push_back(part.text);
  }
  for (NodeLine& line : LinesOf(node)) {
    if (line.is_note) notes.push_back(std::move(line.text));
  }
  return notes;
}

std::string TextOf(const NodeReport& node) {
  const NodeSpec& spec = node.spec();
  std::vector<LinePart> line = StateOf(spec);
  line.insert(line.begin(), {spec.gpu_model.empty() ? "no GPU model" : spec.gpu_model});
  std::string text =
      ShortName(node.name, kLongestName) + ": " + LineOf(line, RoomBehind(node.name)) + "\n";
  for (const NodeLine& one : LinesOf(node)) text += "  " + one.text + "\n";
  std::vector<Row> rows;
  for (const NodeTenant& tenant : node.tenants) {
    const PodRecord& record = *tenant.record;
    rows.push_back({tenant.name(), DevicesOf(tenant),
                    "priority " + std::to_string(record.pod.priority),
                    record.state == PodState::kReserved ? "being bound" : StateOf(record.state)});
  }
  return rows.empty() ? text : text + "Pods with GPUs:\n" + TableOf(rows);
}

std::string TextOf(const GangReport& report) {
  std::string text = ShortName(report.gang.id.text(), kLongestName) + ": " + report.sentence + "\n";
  text += GangLine(report.gang);
  for (const std::string& wish : report.wishes) text += OnOneLine(wish) + "\n";
  std::vector<Row> rows;
  for (const GangMemberReport& member : report.members) {
    rows.push_back({member.pod, member.state, member.node});
  }
  if (!rows.empty()) text += "Members:\n" + TableOf(rows);
  if (report.waiting) text += "One waiting pod, alone:\n" + TextOf(*report.waiting);
  return text;
}

std::string TextOf(const WaitingReport& report) {
  if (report.units.empty()) return "no pod waits for GPUs\n";
  std::vector<Row> rows = {{"WAITS", "AGE", "ASKS FOR", "WHY"}};
  for (const WaitingUnit& unit : report.units) {
    rows.push_back({(unit.is_gang ? "gang " : "pod ") + ShortName(unit.name, kLongestName),
                    AgeText(unit.age), unit.asks, unit.sentence});
  }
  const std::string more = "and " + std::to_string(report.beyond) + " more\n";
  return TableOf(rows, "") + (report.beyond > 0 ? more : "");
}

std::string TextOf(const NodesReport& report) {
  std::vector<Row> rows;
  for (const NodesReport::Row& row : report.rows) {
    rows.push_back({row.node, row.model.empty() ? "-" : row.model, Join(row.notes, "; ")});
  }
  const std::size_t fine = report.gpu_nodes - rows.size();
  return std::to_string(fine) + " of " +
         CountText(static_cast<std::int64_t>(report.gpu_nodes), "GPU node") +
         (fine == 1 || report.gpu_nodes == 1 ? " is fine\n" : " are fine\n") + TableOf(rows);
}

std::string TextOf(const UseReport& report) {
  const char* const what = report.by == Owner::kNamespace ? "Namespace " : "Workload class ";
  if (report.nodes.empty()) return what + report.name + ": no pod holds GPUs\n";
  std::vector<Row> rows = {{"NODE", "GPUS", "MIG DEVICES", "PODS"}};
  for (const NodeUse& at : report.nodes) {
    rows.push_back({at.node, CpuText(std::llround(at.use.gpus * 1000)),
                    std::to_string(at.use.mig_devices), std::to_string(at.use.pods)});
  }
  return what + report.name + " holds:\n" + TableOf(rows);
}

std::string TextOf(const TopReport& report) {
  std::string text = ModelsTable(report.models);
  for (const auto& [what, count] : report.by_claims) {
    text += "  " + std::to_string(count) + " " + what + ", by ResourceClaims alone\n";
  }
  std::vector<Row> rows = {{"WAITING", "PODS", "OLDEST"}};
  for (const WaitingClass& kind : report.waiting) {
    rows.push_back({kind.asks, std::to_string(kind.pods), AgeText(kind.oldest)});
  }
  return text + "\n" + (report.waiting.empty() ? "  no pod waits\n" : TableOf(rows));
}

}  // namespace berth::wire
