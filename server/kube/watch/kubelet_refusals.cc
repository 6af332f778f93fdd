// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/kubelet_refusals.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <memory>
#include <span>

#include "scoring/explain/node_report.h"

namespace berth::kube {
namespace {

constexpr const char* kNoRoom = "pods on the node ask for more than it has";
constexpr const char* kNodeChanged = "the node's GPUs or readiness changed in the meantime";
constexpr const char* kTogether = "the pod was bound before the last rejection was known";

// Devices that pods ask for and that the node has no more of, for MIG devices.
bool LacksMig(const Node& node) {
  const NodeMig& mig = node.spec().mig;
  if (!mig.known() || mig->by_claims()) return false;
  int asked = 0, taken = 0;
  for (const auto& pod : node.pods()) {
    if (const MigSlices* const slices = pod->pod.shape.mig()) asked += slices->count();
  }
  for (const auto set : node.mig().taken()) taken += std::popcount(set);
  for (const int users : node.mig().shared_taken()) taken += users;
  return asked > taken;
}

// Whether the pods of the node were given more than it has. Then its kubelet refuses some rightly.
bool IsOverfull(const Node& node) {
  if (std::min({node.free_cpu_milli(), node.free_memory_bytes(), node.free_ephemeral_bytes()}) < 0)
    return true;
  if (node.spec().places.count > 0 && node.free_places() < 0) return true;
  std::int64_t held = 0;
  for (std::size_t i = 0; i < node.gpus().size(); ++i) {
    const GpuFree& free = node.gpus()[i];
    const bool has_memory = node.spec().gpus[i].memory_mib == 0 || free.memory_mib >= 0;
    if (free.milli < 0 || !has_memory) return true;
    held += kMilliPerGpu - free.milli;
  }
  return held > std::int64_t{kMilliPerGpu} * node.healthy_gpus() || LacksMig(node);
}

KubeletRefusals::Facts FactsAbout(const Node& node) {
  const NodeSpec& spec = node.spec();
  return {node.gpus().size(), node.healthy_gpus(), spec.places.count - spec.missing, spec.ready,
          spec.ready_since};
}

// What the kubelet's words say that it was short of.
enum class About { kGpus, kElse, kUnsaid };

bool Names(std::string_view words, std::string_view resource) {
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '/';
  };
  if (resource.empty()) return false;
  for (std::size_t at = words.find(resource); at != std::string_view::npos;
       at = words.find(resource, at + 1)) {
    const std::string_view before = words.substr(0, at), after = words.substr(at + resource.size());
    const bool begins = before.empty() || before.ends_with("OutOf") ||
                        !(is_of_name(before.back()) || before.back() == '.');
    const bool dotted = after.size() > 1 && after[0] == '.' && is_of_name(after[1]);
    if (begins && !dotted && (after.empty() || !is_of_name(after.front()))) return true;
  }
  return false;
}

// (k8s.io/kubernetes pkg/kubelet/cm: devicemanager, memorymanager, cpumanager)
About AboutWhat(std::string_view words, std::string_view gpu_resource) {
  constexpr std::array<std::string_view, 4> kOfElse = {"devices unavailable", "cannot allocate",
                                                       "memorymanager", "cpus available"};
  if (words.starts_with("TopologyAffinityError")) return About::kElse;
  if (Names(words, gpu_resource)) return About::kGpus;
  const bool is_else = words.starts_with("OutOf") || std::ranges::any_of(kOfElse, [&](auto text) {
                         return words.find(text) != std::string_view::npos;
                       });
  return is_else ? About::kElse : About::kUnsaid;
}

int PodsWithGpus(const Node& node) {
  return static_cast<int>(std::ranges::count_if(
      node.pods(), [](const auto& pod) { return pod->pod.shape.wants_gpu(); }));
}

std::string PauseText(Duration time) {
  if (time < std::chrono::minutes(1)) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) +
           " seconds";
  }
  return std::to_string(std::chrono::duration_cast<std::chrono::minutes>(time).count()) +
         " minutes";
}

}  // namespace

std::optional<KubeletRefusals::Start> KubeletRefusals::Begins(const std::string& uid,
                                                              const std::string& node) {
  if (!parts_.state.IsBoundFromHere(uid, node)) return std::nullopt;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const found = snapshot->FindNode(node);
  if (found == nullptr) return std::nullopt;
  const MutexLock lock(mutex_);
  return Start{node, FactsAbout(*found), !IsOverfull(*found), ++number_};
}

void KubeletRefusals::Vanished(const PodId& pod, Start start) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const node = snapshot->FindNode(start.node);
  if (node == nullptr) return;
  Lost lost{.pod = pod, .start = std::move(start)};
  if (!lost.start.had_room || IsOverfull(*node)) {
    lost.why_not_counted = kNoRoom;
  } else if (lost.start.facts != FactsAbout(*node)) {
    lost.why_not_counted = kNodeChanged;
  }
  lost.others = PodsWithGpus(*node);
  lost.gpu_resource = node->spec().gpu_resource;
  if (const PodRecord* const record = node->FindPod(pod.uid)) {
    lost.ask = RefusedAskOf(record->pod);
    --lost.others;
  }
  const MutexLock lock(mutex_);
  lost.number = ++number_;
  lost_.push_back(std::move(lost));
  if (lost_.size() > kMostWaiting) lost_.pop_front();
}

void KubeletRefusals::Runs(const PodRequest& pod, const std::string& node) {
  std::optional<RefusedAsk> ask = RefusedAskOf(pod);
  const MutexLock lock(mutex_);
  run_.push_back({node, std::move(ask)});
  if (run_.size() > kMostRunning) run_.pop_front();
}

void KubeletRefusals::BeginAnew() {
  const MutexLock lock(mutex_);
  lost_.clear();
  run_.clear();
  begins_anew_ = true;
}

KubeletRefusals::Stats KubeletRefusals::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

void KubeletRefusals::Look() {
  std::vector<Lost> lost;
  std::deque<Run> run;
  bool begins_anew = false;
  {
    const MutexLock lock(mutex_);
    begins_anew = std::exchange(begins_anew_, false);
    run.swap(run_);
    const auto some = static_cast<std::ptrdiff_t>(std::min(lost_.size(), kPerLook));
    lost.assign(std::make_move_iterator(lost_.begin()),
                std::make_move_iterator(lost_.begin() + some));
    lost_.erase(lost_.begin(), lost_.begin() + some);
  }
  if (begins_anew) ForgetAll();
  for (const Run& one : run) Recover(one);
  const Instant now = parts_.clock.Now();
  AskAbout(lost, now);
  Reopen(now);
  CountClosed();
}

// What runs there shows that the kubelet takes pods with GPUs, and pods that ask for the same.
void KubeletRefusals::Recover(const Run& run) {
  const auto found = trouble_.find(run.node);
  if (found == trouble_.end()) return;
  NodeTrouble& node = found->second;
  if (node.all.closings > 0 || node.all.was_brief) {
    parts_.log(false, "node_takes_pods", "node " + run.node + ": it runs a GPU pod again");
  }
  node.all = {};
  for (AskTrouble& trouble : node.asks) trouble.unsaid = false;
  std::erase_if(node.asks, [&](const AskTrouble& trouble) {
    const bool is_over = run.ask && trouble.ask.Covers(*run.ask);
    if (is_over && trouble.closings > 0) {
      parts_.log(false, "node_takes_pods",
                 "node " + run.node + ": it runs a pod with " + AskText(trouble.ask) + " again");
    }
    return is_over;
  });
  Publish(run.node, node);
  if (node.asks.empty()) trouble_.erase(found);
}

void KubeletRefusals::AskAbout(const std::vector<Lost>& lost, Instant now) {
  for (auto one = lost.begin(); one != lost.end(); ++one) {
    const std::optional<std::string> words = parts_.why_not_admitted(one->pod);
    if (!words) {  // the others would wait as long, and what comes after this look with them
      const MutexLock lock(mutex_);
      lost_.insert(lost_.begin(), one, lost.end());
      return;
    }
    if (!words->empty()) Refused(*one, *words, now);
  }
}

std::optional<KubeletRefusals::Facts> KubeletRefusals::FactsOf(const std::string& node) const {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const found = snapshot->FindNode(node);
  return found == nullptr ? std::nullopt : std::optional(FactsAbout(*found));
}

void KubeletRefusals::Refused(const Lost& lost, const std::string& words, Instant now) {
  {
    const MutexLock lock(mutex_);
    ++stats_.refused;
  }
  const std::optional<Facts> facts = FactsOf(lost.start.node);
  if (!facts) return;
  const char* why_not = lost.why_not_counted;
  if (why_not == nullptr && *facts != lost.start.facts) why_not = kNodeChanged;
  const std::string follows = why_not != nullptr ? std::string(", which does not count: ") + why_not
                                                 : Count(lost, words, now);
  parts_.log(true, "pod_not_admitted",
             "node " + lost.start.node + ": its kubelet rejected pod " + lost.pod.full_name() +
                 " (" + words + ")" + follows);
}

Duration KubeletRefusals::NextPause(Trouble& trouble, std::string_view words) {
  const bool in_use = words.find(kDevicesInUse) != std::string_view::npos;
  if (in_use && !std::exchange(trouble.was_brief, true)) return kBriefly;
  return kClosedFor[std::min(trouble.closings++, kClosedFor.size() - 1)];
}

bool KubeletRefusals::IsOneOfMany(const NodeTrouble& node, const Lost& lost) {
  return std::ranges::any_of(node.asks, [&lost](const AskTrouble& other) {
    const auto is_shared = [&lost](const OtherResource& one) {
      return FindOther(lost.ask->others, one.name) != nullptr;
    };
    return other.unsaid && other.owner != lost.pod.namespace_name &&
           lost.start.number >= other.counted && other.ask != *lost.ask &&
           std::ranges::none_of(other.ask.others, is_shared);
  });
}

std::string KubeletRefusals::Count(const Lost& lost, std::string_view words, Instant now) {
  const About about = AboutWhat(words, lost.gpu_resource);
  if (about != About::kGpus && !lost.ask) return "";  // nothing that it could be remembered by
  NodeTrouble& node = trouble_[lost.start.node];
  node.facts = lost.start.facts;
  const bool is_one_of_many = about == About::kUnsaid && IsOneOfMany(node, lost);
  AskTrouble* const of_ask = about == About::kGpus ? nullptr : &TroubleOf(node, lost);
  if (of_ask != nullptr && lost.start.number >= of_ask->counted) {
    of_ask->others = about == About::kElse ? lost.others : 0;
    of_ask->owner = lost.pod.namespace_name;
    of_ask->unsaid = about == About::kUnsaid;
  }
  Trouble& trouble = of_ask == nullptr ? node.all : *of_ask;
  if (lost.start.number < trouble.counted) {
    return std::string(", which does not count: ") + kTogether;
  }
  trouble.counted = lost.number;
  trouble.last = now;
  ++trouble.refusals;
  if (is_one_of_many) {
    node.all.counted = lost.number;
    node.all.last = now;
    node.all.refusals = std::max(node.all.refusals, kToClose);
  }
  Trouble& closes = is_one_of_many && !node.all.closed_until ? node.all : trouble;
  if (closes.refusals < kToClose || closes.closed_until) return "";
  const Duration pause = NextPause(closes, words);
  closes.closed_until = now + pause;
  Publish(lost.start.node, node);
  return (&closes != &trouble ? ", as was a different one of another namespace"
                              : ", " + std::to_string(trouble.refusals) + " in a row") +
         ": Berth binds no " +
         (&closes == &node.all ? "GPU pods" : "pods with " + AskText(of_ask->ask)) + " there for " +
         PauseText(pause);
}

// What refused less refuses this too; what refused more may have refused it for what is more. Where
// there are too many, the namespace with most gives way with its oldest.
KubeletRefusals::AskTrouble& KubeletRefusals::TroubleOf(NodeTrouble& node, const Lost& lost) {
  const RefusedAsk& ask = *lost.ask;
  int before = 0;
  for (AskTrouble& known : node.asks) {
    if (known.ask == ask) return known;
    const bool counts = known.ask.Covers(ask) && lost.start.number >= known.counted;
    if (counts) before = std::max(before, known.refusals);
  }
  if (node.asks.size() == kMostRefusedAsks) {
    node.asks.erase(std::ranges::min_element(node.asks, {}, [&node](const AskTrouble& one) {
      return std::pair(-std::ranges::count(node.asks, one.owner, &AskTrouble::owner), one.last);
    }));
  }
  AskTrouble& added = node.asks.emplace_back();
  added.ask = ask;
  added.refusals = before;
  return added;
}

void KubeletRefusals::Reopen(Instant now) {
  for (auto entry = trouble_.begin(); entry != trouble_.end();) {
    auto& [name, node] = *entry;
    const std::optional<Facts> facts = FactsOf(name);
    // Closed here and open there: it went, and another one came under its name.
    const bool is_another = facts != node.facts || !IsKnown(name, node);
    Trouble& all = node.all;
    bool opens = false;
    if (all.closed_until && (is_another || now >= *all.closed_until)) {
      parts_.log(false, "node_is_tried",
                 "node " + name + ": Berth binds GPU pods there again" +
                     (is_another ? ", the node has changed" : ""));
      all.closed_until.reset();
      opens = true;
    }
    if (ReopenAsks(name, node, is_another, now)) opens = true;
    if (opens) Publish(name, node);
    if (!all.closed_until && now - all.last >= kForgotten) all = {};
    const bool is_over = is_another || (all.refusals == 0 && node.asks.empty());
    entry = is_over ? trouble_.erase(entry) : std::next(entry);
  }
}

bool KubeletRefusals::ReopenAsks(const std::string& name, NodeTrouble& node, bool is_another,
                                 Instant now) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const found = snapshot->FindNode(name);
  const int others = found == nullptr ? 0 : PodsWithGpus(*found);
  bool opens = false;
  for (AskTrouble& trouble : node.asks) {
    if (!trouble.closed_until) continue;
    const bool has_more = others < trouble.others;
    if (!is_another && !has_more && now < *trouble.closed_until) continue;
    parts_.log(false, "node_is_tried",
               "node " + name + ": Berth binds pods with " + AskText(trouble.ask) + " there again" +
                   (is_another ? ", the node has changed"
                    : has_more ? ", a GPU pod has left"
                               : ""));
    trouble.closed_until.reset();
    opens = true;
  }
  std::erase_if(node.asks, [now](const AskTrouble& trouble) {
    return !trouble.closed_until && now - trouble.last >= kForgotten;
  });
  return opens;
}

void KubeletRefusals::ForgetAll() {
  for (const auto& [name, node] : trouble_) Publish(name, {});
  trouble_.clear();
}

void KubeletRefusals::CountClosed() {
  std::size_t closed = 0, closed_asks = 0;
  for (const auto& [name, node] : trouble_) {
    closed += node.all.closed_until ? 1U : 0U;
    for (const AskTrouble& trouble : node.asks) closed_asks += trouble.closed_until ? 1U : 0U;
  }
  const MutexLock lock(mutex_);
  stats_.closed = closed;
  stats_.closed_asks = closed_asks;
}

bool KubeletRefusals::IsKnown(const std::string& name, const NodeTrouble& node) const {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const found = snapshot->FindNode(name);
  const bool has_asks = std::ranges::any_of(
      node.asks, [](const AskTrouble& trouble) { return trouble.closed_until.has_value(); });
  return found != nullptr && found->spec().refuses_gpu_pods == node.all.closed_until.has_value() &&
         (found->spec().refused_asks != nullptr) == has_asks;
}

void KubeletRefusals::Publish(const std::string& name, const NodeTrouble& node) {
  std::vector<RefusedAsk> asks;
  for (const AskTrouble& trouble : node.asks) {
    if (trouble.closed_until) asks.push_back(trouble.ask);
  }
  const ClusterEvent event = GpuPodsRefused{
      name, node.all.closed_until.has_value(),
      asks.empty() ? nullptr : std::make_shared<const std::vector<RefusedAsk>>(std::move(asks))};
  (void)parts_.state.Apply(std::span(&event, 1));  // has no spec: cannot fail
}

}  // namespace berth::kube
