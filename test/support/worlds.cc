// SPDX-License-Identifier: Apache-2.0
#include "test/support/worlds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scoring/admission.h"
#include "scoring/registry.h"
#include "scoring/room/room_nodes.h"

namespace berth::test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kMachine = "node.kubernetes.io/instance-type";
constexpr const char* kProduct = "nvidia.com/gpu.product";
constexpr const char* kPool = "pool";
constexpr const char* kPoolTaint = "nvidia.com/gpu";
constexpr const char* kStartUpTaint = "node.cilium.io/agent-not-ready";
constexpr const char* kHugePages = "hugepages-2Mi";
constexpr int kMostPods = 110;

struct Product {
  const char* model;
  const char* machine;
  std::int64_t memory_mib;
};
// Machines that no catalogue knows: these have as many GPUs as their pool says.
constexpr std::array<Product, 4> kProducts = {{{"NVIDIA-H100-80GB-HBM3", "hgx-h100", 81'559},
                                               {"NVIDIA-A100-SXM4-80GB", "hgx-a100", 81'920},
                                               {"NVIDIA-A40", "dgx-a40", 46'068},
                                               {"Tesla-T4", "t4-box", 15'360}}};

NodeConstraints ConstraintsOf(const PodRequest& pod) {
  return pod.constraints == nullptr ? NodeConstraints() : *pod.constraints;
}

void Constrain(PodRequest& pod, NodeConstraints constraints) {
  std::ranges::sort(constraints.selector);
  pod.constraints = std::make_shared<const NodeConstraints>(std::move(constraints));
}

void SetLabel(Labels& labels, const std::string& key, const std::string& value) {
  const auto at = std::ranges::lower_bound(labels, key, {}, &Labels::value_type::first);
  labels.insert(at, {key, value});
}

std::string LabelOf(const NodeSpec& spec, std::string_view key) {
  const std::string* const value = FindLabel(spec.labels, key);
  return value == nullptr ? "" : *value;
}

bool HasTaint(const NodeSpec& spec, std::string_view key) {
  return std::ranges::find(spec.taints, key, &Taint::key) != spec.taints.end();
}

void Sort(std::vector<PodDisruptionBudget>& budgets) {
  std::ranges::sort(budgets, [](const auto& a, const auto& b) {
    return std::tie(a.namespace_name, a.name) < std::tie(b.namespace_name, b.name);
  });
}

}  // namespace

World::World(std::uint64_t seed, const WorldSize& size) : random_(seed), size_(size) {
  DrawPools(size);
  DrawNodes(size);
  std::vector<Node> nodes;
  for (const NodeSpec& spec : nodes_) nodes.emplace_back(std::make_shared<const NodeSpec>(spec));
  GiveDaemons(nodes);
  PlaceBeside(nodes);
  Fill(nodes, size);
  End(nodes);
  MarkNodes(nodes);
  DrawBudgets();
  DrawWaiting(size);
}

void World::DrawPools(const WorldSize& size) {
  const int count = size.nodes < 2 ? 1 : random_.OneOf<int>({1, 2, 2, 2, 3});
  static const std::vector<std::string> kNames = {"train", "serve", "spot"};
  std::size_t product = random_.OneOf<std::size_t>({0, 1});
  for (int i = 0; i < count; ++i) {
    Pool pool;
    pool.name = kNames[static_cast<std::size_t>(i)];
    pool.number = i;
    const Product& of = kProducts.at(product);
    product = 2 + static_cast<std::size_t>(i % 2);
    pool.model = of.model;
    pool.machine = of.machine;
    pool.memory_mib = of.memory_mib;
    pool.gpus = i == 0 ? size.gpus : std::max(size.gpus / random_.OneOf<int>({1, 2, 2}), 1);
    const bool is_short = random_.Chance(30);
    pool.cpu = is_short ? 2 * pool.gpus + 4 : 8 * pool.gpus + 32;
    pool.tainted = random_.Chance(70);
    if (random_.Chance(35)) {
      const bool efa = random_.Chance(50);
      if (random_.Chance(60)) pool.others.push_back({kHugePages, 5120 * (kGib >> 10)});
      efa ? pool.others.push_back({"vpc.amazonaws.com/efa", 4 * pool.gpus})
          : pool.others.push_back({"rdma/rdma_shared_device_a", 63});
      std::ranges::sort(pool.others);
    }
    pools_.push_back(pool);
  }
}

void World::DrawNodes(const WorldSize& size) {
  const int zones = size.nodes < 2 ? 1 : random_.Between(2, 3);
  std::map<std::string, int> numbers;
  for (int i = 0; i < size.nodes; ++i) {
    // Each pool has a node.
    const auto at = i < std::ssize(pools_) ? static_cast<std::size_t>(i)
                                           : random_.OneOf<std::size_t>({0, 0, pools_.size() - 1});
    const Pool& pool = pools_[at];
    NodeSpec spec;
    spec.name = pool.name + "-" + std::to_string(100 + numbers[pool.name]++);
    spec.gpu_model = pool.model;
    spec.gpu_resource = "nvidia.com/gpu";
    spec.cpu_milli = pool.cpu * 1000 - 250;
    spec.memory_bytes = (std::int64_t{64} * pool.gpus + 64) * kGib;
    spec.most_pods = kMostPods;
    spec.others = pool.others;
    for (int gpu = 0; gpu < pool.gpus; ++gpu) {
      spec.gpus.push_back(
          {"GPU-" + spec.name + "-" + std::to_string(gpu), pool.memory_mib, true, 0});
    }
    SetLabel(spec.labels, kZone, "z" + std::to_string(1 + i % zones));
    SetLabel(spec.labels, kMachine, pool.machine);
    SetLabel(spec.labels, kProduct, pool.model);
    SetLabel(spec.labels, kPool, pool.name);
    SetLabel(spec.labels, "kubernetes.io/hostname", spec.name);
    SetLabel(spec.labels, "nvidia.com/gpu.count", std::to_string(pool.gpus));
    SetLabel(spec.labels, "nvidia.com/gpu.memory", std::to_string(pool.memory_mib));
    if (pool.tainted) spec.taints.push_back({kPoolTaint, "present", TaintEffect::kNoSchedule});
    if (i >= std::ssize(pools_) && random_.Chance(6)) joining_.insert(spec.name);
    if (random_.Chance(6)) {
      const int gpu = random_.Between(0, pool.gpus - 1);
      spec.gpus[static_cast<std::size_t>(gpu)].healthy = false;
    }
    nodes_.push_back(std::move(spec));
  }
  for (int i = 0; i < size.cpu_nodes; ++i) {
    NodeSpec spec;
    spec.name = "cpu-" + std::to_string(100 + i);
    spec.cpu_milli = 31'750;
    spec.memory_bytes = 128 * kGib;
    spec.most_pods = kMostPods;
    SetLabel(spec.labels, kZone, "z" + std::to_string(1 + i % zones));
    SetLabel(spec.labels, kPool, "cpu");
    SetLabel(spec.labels, "kubernetes.io/hostname", spec.name);
    nodes_.push_back(std::move(spec));
  }
  std::ranges::sort(nodes_, {}, &NodeSpec::name);
}

World::App World::DrawApp(std::size_t at, const WorldSize& size) {
  const Pool& pool = pools_[at];
  App app;
  app.pool = at;
  app.namespace_name = random_.OneOf<std::string>({"ml-train", "ml-serve", "ml-dev"});
  app.name = "app" + std::to_string(serial_++);
  const int kind = random_.Between(1, 100);
  app.kind = kind <= 35 ? "ReplicaSet" : kind <= 70 ? "Job" : kind <= 90 ? "StatefulSet" : "";
  app.completes = app.kind == "Job";
  std::vector<int> sizes = {1, 1, 1};
  for (int gpus = 2; gpus <= pool.gpus; gpus *= 2) sizes.push_back(gpus);
  app.gpus = random_.OneOf(sizes);
  if (size.shares && random_.Chance(33)) app.milli = random_.OneOf<int>({200, 300, 500, 700});
  app.priority = random_.OneOf<int>({0, 0, 0, 50, 50, 100, 100, 1000});
  if (size.gangs && !app.kind.empty() && random_.Chance(30)) app.gang = random_.Between(2, 3);
  app.foreign = app.gang == 0 && random_.Chance(8);

  PodRequest& pod = app.pod;
  pod.id.namespace_name = app.namespace_name;
  pod.priority = app.priority;
  pod.container_count = 1;
  if (app.milli > 0) {
    app.gpus = 1;
    pod.shape.gpus = GpuShare{.milli = app.milli};
  } else {
    pod.shape.gpus = WholeGpus{app.gpus};
    pod.shape.gpu_resource = "nvidia.com/gpu";
  }
  pod.containers.push_back({"main", pod.shape.gpus, false});
  const int per_gpu = random_.OneOf<int>({2, 3, 4});
  pod.shape.cpu_milli = std::int64_t{1000} * per_gpu * app.gpus;
  pod.shape.memory_bytes = std::int64_t{32} * app.gpus * kGib;
  if (app.foreign) pod.scheduler = "volcano";
  pod.labels = std::make_shared<const Labels>(Labels{{"app", app.name}});
  if (!app.kind.empty()) pod.controller = "uid-of-" + app.namespace_name + "-" + app.name;
  pod.mobility = app.kind.empty() ? Mobility::kNoController : Mobility::kMoves;
  if (!app.kind.empty() && random_.Chance(12)) {
    pod.mobility = random_.OneOf<Mobility>(
        {Mobility::kDoNotDisrupt, Mobility::kNotSafeToEvict, Mobility::kHostPath});
  }
  pod.keep = random_.Chance(3);
  if (app.completes) {
    pod.series = 1 + static_cast<std::uint64_t>(serial_);
    if (random_.Chance(40)) pod.expected_seconds = 60 * random_.Between(10, 600);
    if (random_.Chance(30)) pod.deadline_seconds = 60 * random_.Between(20, 900);
  }
  if (!pool.others.empty() && random_.Chance(60)) {
    OtherResources others;
    for (const OtherResource& has : pool.others) {
      const bool pages = has.name == kHugePages;
      if (pages && random_.Chance(40)) continue;
      others.push_back({has.name, pages ? kGib : has.amount >= 63 ? 1 : 4 * app.gpus});
    }
    if (!others.empty()) {
      pod.others = std::make_shared<const OtherResources>(others);
      pod.own_to_scheduler.resources = true;
      pod.shape.beside_nic = others.back().name != kHugePages;
    }
  }
  Constrain(app);
  return app;
}

void World::Constrain(App& app) {
  const Pool& pool = pools_[app.pool];
  NodeConstraints constraints;
  if (pool.tainted) {
    random_.Chance(50) ? constraints.tolerations.push_back(
                             {kPoolTaint, TolerationOperator::kExists, "", std::nullopt})
                       : constraints.tolerations.push_back({kPoolTaint, TolerationOperator::kEqual,
                                                            "present", TaintEffect::kNoSchedule});
  }
  const int kind = random_.Between(1, 100);
  const std::string zone = "z" + std::to_string(random_.Between(1, 2));
  if (kind <= 15) {
    constraints.selector.push_back({kPool, LabelOperator::kIn, {pool.name}});
  } else if (kind <= 30) {
    constraints.selector.push_back({kZone, LabelOperator::kIn, {zone}});
  } else if (kind <= 45) {
    constraints.selector.push_back({kMachine, LabelOperator::kIn, {pool.machine}});
  } else if (kind <= 60) {
    constraints.either = {
        NodeSelectorTerm{.labels = {{kProduct, LabelOperator::kIn, {pool.model}}}, .fields = {}}};
  } else if (kind <= 70) {
    constraints.either = {
        NodeSelectorTerm{.labels = {{kZone, LabelOperator::kNotIn, {zone}}}, .fields = {}}};
  }
  test::Constrain(app.pod, std::move(constraints));
}

PodRequest World::PodOf(const App& app) {
  PodRequest pod = app.pod;
  pod.id.name = app.name + "-" + std::to_string(serial_++);
  pod.id.uid = "uid-" + pod.id.name;
  return pod;
}

PodRequest World::Successor(const PodRequest& pod) {
  PodRequest next = pod;
  next.id.name = pod.id.name.substr(0, pod.id.name.rfind('-')) + "-" + std::to_string(serial_++);
  next.id.uid = "uid-" + next.id.name;
  next.checkpointed.reset();
  return next;
}

std::vector<PodBound> World::DaemonPodsOn(const NodeSpec& spec) const {
  std::vector<PodBound> pods;
  for (const char* const name : {"cilium", "nvidia-device-plugin"}) {
    if (spec.gpu_model.empty() && std::string_view(name) == "nvidia-device-plugin") continue;
    PodBound bound;
    PodRequest& pod = bound.pod;
    pod.id.namespace_name = "kube-system";
    pod.id.name = std::string(name) + "-" + spec.name;
    pod.id.uid = "uid-" + pod.id.name;
    pod.priority = kCritical;
    pod.container_count = 1;
    pod.belongs_on_any_node = true;
    pod.mobility = Mobility::kComesBack;
    pod.controller = "uid-of-kube-system-" + std::string(name);
    pod.shape.cpu_milli = 500;
    pod.shape.memory_bytes = kGib;
    pod.labels = std::make_shared<const Labels>(Labels{{"app", name}});
    NodeConstraints constraints;
    constraints.tolerations = {{"", TolerationOperator::kExists, "", std::nullopt}};
    constraints.either = {NodeSelectorTerm{
        .labels = {}, .fields = {{"metadata.name", LabelOperator::kIn, {spec.name}}}}};
    test::Constrain(pod, std::move(constraints));
    bound.placement = {spec.name, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
    bound.life = {.started = Now() - hours(200), .comes_back = true};
    pods.push_back(std::move(bound));
  }
  return pods;
}

NodeSpec World::NewNodeLike(const NodeSpec& spec, const std::string& name) const {
  NodeSpec made = spec;
  made.name = name;
  made.ready = true;
  made.most_pods = kMostPods;
  std::erase_if(made.taints, [](const Taint& taint) { return taint.key != kPoolTaint; });
  for (std::size_t gpu = 0; gpu < made.gpus.size(); ++gpu) {
    made.gpus[gpu].uuid = "GPU-" + name + "-" + std::to_string(gpu);
    made.gpus[gpu].healthy = true;
  }
  for (auto& [key, value] : made.labels) {
    if (key == "kubernetes.io/hostname") value = name;
  }
  return made;
}

void World::Run(Node& node, const PodRequest& pod, const Placement& placement, PodLife life) {
  PodRecord record{pod, placement, PodState::kBound, {}};
  record.life = life;
  record.leaving = life.ends.has_value();
  node.Put(std::make_shared<const PodRecord>(record));
  pods_.push_back({pod, placement, std::move(life)});
}

void World::GiveDaemons(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    for (const PodBound& daemon : DaemonPodsOn(node.spec())) {
      Run(node, daemon.pod, daemon.placement, daemon.life);
    }
    if (!random_.Chance(30)) continue;
    PodRequest pod;
    pod.id = {"uid-kube-vip-" + node.spec().name, "kube-system", "kube-vip-" + node.spec().name};
    pod.priority = kCritical;
    pod.container_count = 1;
    pod.mobility = Mobility::kComesBack;
    pod.shape.cpu_milli = 100;
    pod.shape.memory_bytes = kGib / 4;
    Run(node, pod, {node.spec().name, 100, kGib / 4, {}},
        {.started = Now() - hours(300), .comes_back = true});
  }
}

void World::PlaceBeside(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    const bool chosen = random_.Chance(node.spec().has_gpus() ? 25 : 90);
    if (!chosen || joining_.contains(node.spec().name)) continue;
    App app;
    app.name = "web" + std::to_string(serial_++);
    PodRequest& pod = app.pod;
    pod.id.namespace_name = app.namespace_name = "ml-serve";
    pod.priority = random_.OneOf<int>({0, 50, 100});
    pod.container_count = 1;
    pod.mobility = Mobility::kMoves;
    pod.controller = "uid-of-ml-serve-" + app.name;
    pod.shape.cpu_milli = 1000 * random_.Between(1, 4);
    pod.shape.memory_bytes = 4 * kGib;
    pod.labels = std::make_shared<const Labels>(Labels{{"app", app.name}});
    if (HasTaint(node.spec(), kPoolTaint)) {
      NodeConstraints constraints;
      constraints.tolerations = {{kPoolTaint, TolerationOperator::kExists, "", std::nullopt}};
      test::Constrain(pod, std::move(constraints));
    }
    const PodRequest one = PodOf(app);
    const auto placement = PlaceOnNode(node, one);
    if (placement) Run(node, one, *placement, {.started = Now() - hours(30)});
  }
}

// Not where it would be best: on GPUs from the end as often as from the beginning.
std::optional<Placement> World::AnyPlace(const Node& node, const PodRequest& pod) {
  auto placement = PlaceOnNode(node, pod);
  if (!placement || !random_.Chance(50)) return placement;
  Placement other = *placement;
  const int last = static_cast<int>(node.spec().gpus.size()) - 1;
  for (DeviceGrant& grant : other.grants) {
    grant.gpu = last - grant.gpu;
    const GpuSpec* const there = node.spec().FindGpu(grant.gpu);
    if (there == nullptr || !there->healthy) return placement;
  }
  std::ranges::sort(other.grants, {}, &DeviceGrant::gpu);
  return node.CanTake(other) ? other : placement;
}

bool World::Place(std::vector<Node>& nodes, const App& app) {
  const std::vector<Node> before = nodes;
  const std::size_t pods = pods_.size();
  GangId gang;
  if (app.gang > 0) {
    gang = {"berth", app.namespace_name, app.name + "-" + std::to_string(serial_++)};
  }
  for (int i = 0; i < std::max(app.gang, 1); ++i) {
    PodRequest pod = PodOf(app);
    if (app.gang > 0) pod.gang = {.id = gang, .minimum = app.gang, .total = app.gang};
    std::vector<std::size_t> fitting;
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      if (joining_.contains(nodes[at].spec().name)) continue;
      if (Admits(nodes[at].spec(), pod) == Reason::kFits && PlaceOnNode(nodes[at], pod)) {
        fitting.push_back(at);
      }
    }
    if (fitting.empty()) {
      nodes = before;
      pods_.resize(pods);
      return false;
    }
    Node& node = nodes[random_.OneOf(fitting)];
    Placement placement = *AnyPlace(node, pod);
    if (app.foreign) placement.grants.clear();
    PodLife life{.started = Now() - minutes(random_.Between(15, 5000))};
    life.completes = app.completes;
    if (random_.Chance(60)) pod.checkpointed = Now() - minutes(random_.Between(0, 300));
    if (random_.Chance(4)) life.ends = Now() + std::chrono::seconds(random_.Between(5, 60));
    Run(node, pod, placement, life);
  }
  return true;
}

void World::Fill(std::vector<Node>& nodes, const WorldSize& size) {
  int total = 0, held = 0, pods = 0;
  for (const Node& node : nodes) total += node.healthy_gpus();
  for (int tries = 0; tries < 2 * size.nodes + 20; ++tries) {
    if (held * 100 >= total * size.held_percent || pods >= size.most_held) break;
    const auto at =
        static_cast<std::size_t>(random_.Between(0, static_cast<int>(pools_.size()) - 1));
    App app = DrawApp(at, size);
    const int replicas = random_.Between(1, 3);
    bool runs = false;
    for (int i = 0; i < replicas; ++i) {
      if (pods + std::max(app.gang, 1) > size.most_held) break;
      if (!Place(nodes, app)) break;
      runs = true;
      pods += std::max(app.gang, 1);
      held += app.gpus * std::max(app.gang, 1);
    }
    if (runs) apps_.push_back(std::move(app));
  }
}

// Some that ran there once.
void World::End(const std::vector<Node>& nodes) {
  if (apps_.empty()) return;
  const int ended = std::max(1, static_cast<int>(pods_.size()) / 10);
  for (int i = 0; i < ended; ++i) {
    const Node& node = random_.OneOf(nodes);
    if (!node.spec().has_gpus()) continue;
    const App& app = random_.OneOf(apps_);
    RunningPod over{PodOf(app), {}, {.started = Now() - hours(40)}, true};
    over.placement = {node.spec().name, app.pod.shape.cpu_milli, app.pod.shape.memory_bytes, {}};
    pods_.push_back(std::move(over));
  }
}

void World::MarkNodes(const std::vector<Node>& nodes) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NodeSpec& spec = nodes_[i];
    if (joining_.contains(spec.name)) {
      spec.taints.push_back({kStartUpTaint, "", TaintEffect::kNoSchedule});
      continue;
    }
    const bool full = random_.Chance(8);
    if (full) spec.most_pods = static_cast<int>(std::ssize(nodes[i].pods()));
    const int kind = random_.Between(1, 100);
    // All nodes of a world of one or two stay open.
    if (nodes_.size() < 3) continue;
    if (kind <= 8) {
      spec.taints.push_back({"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule});
    } else if (kind <= 14) {
      spec.ready = false;
      spec.taints.push_back({"node.kubernetes.io/not-ready", "", TaintEffect::kNoSchedule});
    }
  }
}

void World::DrawBudgets() {
  for (const App& app : apps_) {
    if (!random_.Chance(40)) continue;
    budgets_.push_back({app.namespace_name, app.name,
                        LabelSelector{{"app", LabelOperator::kIn, {app.name}}},
                        random_.OneOf<int>({0, 0, 1, 1, 2})});
  }
  Sort(budgets_);
}

PodRequest World::APod() {
  WorldSize size = size_;
  size.gangs = false;
  const int kind = random_.Between(1, 100);
  if (kind <= 35 && !apps_.empty()) {
    const App& app = random_.OneOf(apps_);
    if (app.gang == 0 && !app.foreign) return PodOf(app);
  }
  const auto at = static_cast<std::size_t>(random_.Between(0, static_cast<int>(pools_.size()) - 1));
  App app = DrawApp(at, size);
  app.foreign = false;
  app.pod.scheduler.clear();
  if (kind > 60 && app.milli == 0) {  // a large one
    app.gpus = std::max(pools_[at].gpus / random_.OneOf<int>({1, 1, 2}), 1);
    app.pod.shape.gpus = WholeGpus{app.gpus};
    app.pod.containers.front().gpus = app.pod.shape.gpus;
    app.pod.shape.cpu_milli = std::int64_t{2000} * app.gpus;
    app.pod.shape.memory_bytes = std::int64_t{16} * app.gpus * kGib;
    app.pod.others = nullptr;
    app.pod.own_to_scheduler = {};
    app.pod.shape.beside_nic = false;
  }
  NodeConstraints constraints = ConstraintsOf(app.pod);
  if (kind > 92) constraints.tolerations.clear();  // it forgot them
  if (kind > 85 && kind <= 88) {
    constraints.selector = {{kZone, LabelOperator::kIn, {"z9"}}};
  }
  test::Constrain(app.pod, std::move(constraints));
  return PodOf(app);
}

std::vector<PodRequest> World::AGang() {
  WorldSize size = size_;
  size.gangs = false;
  const auto at = static_cast<std::size_t>(random_.Between(0, static_cast<int>(pools_.size()) - 1));
  App app = DrawApp(at, size);
  app.pod.scheduler.clear();
  app.gang = random_.Between(2, 3);
  const GangId id{"berth", app.namespace_name, app.name + "-" + std::to_string(serial_++)};
  std::vector<PodRequest> pods;
  for (int i = 0; i < app.gang; ++i) {
    pods.push_back(PodOf(app));
    pods.back().gang = {.id = id, .minimum = app.gang, .total = app.gang};
  }
  return pods;
}

void World::DrawWaiting(const WorldSize& size) {
  while (std::ssize(waiting_) < size.waiting) {
    if (size.gangs && random_.Chance(20)) {
      for (PodRequest& pod : AGang()) waiting_.push_back(std::move(pod));
    } else {
      waiting_.push_back(APod());
    }
  }
}

std::vector<ClusterEvent> World::Events() const {
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes_) events.emplace_back(NodeUpserted{node});
  for (const RunningPod& one : pods_) {
    PodBound bound{.pod = one.pod, .placement = one.placement, .life = one.life};
    bound.leaving = one.life.ends.has_value();
    events.emplace_back(std::move(bound));
    if (one.ended) events.emplace_back(PodGone{one.pod.id.uid});
  }
  return events;
}

void World::Populate(ClusterState& state) const {
  const Status applied = state.Apply(Events());
  EXPECT_TRUE(applied.has_value()) << applied.error().message;
}

void World::PutWaiting(WaitingPods& waiting, WallTime created) const {
  for (const PodRequest& pod : waiting_) {
    waiting.Put({.pod = std::make_shared<const PodRequest>(pod),
                 .unschedulable = true,
                 .created = created});
  }
}

void World::PutBudgets(DisruptionBudgets& budgets) const { budgets.Reset(budgets_); }

Node World::NodeOf(const NodeSpec& spec) const {
  Node node(std::make_shared<const NodeSpec>(spec));
  for (const RunningPod& one : pods_) {
    if (one.ended || one.placement.node != spec.name) continue;
    PodRecord record{one.pod, one.placement, PodState::kBound, {}};
    record.life = one.life;
    record.leaving = one.life.ends.has_value();
    node.Put(std::make_shared<const PodRecord>(std::move(record)));
  }
  return node;
}

std::shared_ptr<const Snapshot> World::Snapshot() const {
  std::vector<std::shared_ptr<const Node>> built;
  for (const NodeSpec& spec : nodes_) built.push_back(std::make_shared<const Node>(NodeOf(spec)));
  return std::make_shared<const berth::Snapshot>(built);
}

std::set<WorldProperty> PropertiesOf(const World& world) {
  std::set<WorldProperty> has;
  const auto put = [&has](bool is_so, WorldProperty property) {
    if (is_so) has.insert(property);
  };
  std::set<std::string> zones, models, kinds, foreign;
  std::set<int> priorities;
  std::map<std::string, const NodeSpec*> by_name;
  for (const NodeSpec& spec : world.nodes()) {
    by_name.emplace(spec.name, &spec);
    if (!spec.has_gpus()) continue;
    zones.insert(LabelOf(spec, kZone));
    models.insert(spec.gpu_model);
    put(HasTaint(spec, kStartUpTaint), WorldProperty::kStartUpTaints);
    put(HasTaint(spec, "node.kubernetes.io/unschedulable"), WorldProperty::kCordoned);
    put(!spec.ready, WorldProperty::kUnready);
    const Node node = world.NodeOf(spec);
    const bool idle = std::ranges::any_of(node.gpus(), &GpuFree::idle);
    put(idle && std::ssize(node.pods()) >= spec.most_pods, WorldProperty::kFullOfPods);
    const auto idle_gpus = std::ranges::count_if(node.gpus(), &GpuFree::idle);
    put(idle && node.free_cpu_milli() < 2000 * idle_gpus, WorldProperty::kShortOfCpu);
  }
  put(zones.size() > 1, WorldProperty::kZones);
  put(models.size() > 1, WorldProperty::kTwoModels);
  std::map<std::string, int> daemons;
  for (const World::RunningPod& one : world.pods()) {
    const PodRequest& pod = one.pod;
    const NodeSpec& node = *by_name.at(one.placement.node);
    if (one.ended) {
      put(true, WorldProperty::kEndedPods);
      continue;
    }
    if (one.life.comes_back) {
      put(pod.controller.empty(), WorldProperty::kStaticPods);
      if (!pod.controller.empty()) ++daemons[node.name];
      continue;
    }
    if (!pod.shape.wants_gpu()) continue;
    priorities.insert(pod.priority);
    kinds.insert(pod.controller.empty()   ? "none"
                 : one.life.completes     ? "Job"
                 : !pod.scheduler.empty() ? "another scheduler's"
                                          : "Deployment");
    put(HasTaint(node, kPoolTaint), WorldProperty::kTaintedPools);
    put(!pod.gang.empty(), WorldProperty::kGangs);
    put(!pod.scheduler.empty(), WorldProperty::kForeignPods);
    put(one.life.ends.has_value(), WorldProperty::kEndingPods);
    put(pod.keep || (pod.mobility != Mobility::kMoves && !pod.controller.empty()),
        WorldProperty::kUnmovable);
    if (pod.constraints != nullptr) {
      put(!pod.constraints->selector.empty(), WorldProperty::kSelectors);
      put(pod.constraints->either.has_value(), WorldProperty::kAffinity);
    }
    if (pod.others != nullptr) {
      put(FindOther(*pod.others, kHugePages) != nullptr, WorldProperty::kHugePages);
      put(pod.others->back().name != kHugePages, WorldProperty::kOtherDevices);
    }
    put(std::ranges::any_of(world.budgets(),
                            [&pod](const auto& budget) { return budget.Covers(pod); }),
        WorldProperty::kBudgets);
  }
  put(daemons.size() == world.nodes().size(), WorldProperty::kDaemonSets);
  put(kinds.size() > 2, WorldProperty::kControllers);
  put(priorities.size() > 2, WorldProperty::kPriorities);
  return has;
}

std::vector<ClusterEvent> Autoscaler::Look(const Snapshot& cluster,
                                           std::span<const PodRequest> waiting, Instant now) {
  std::vector<ClusterEvent> events;
  GoOn(now, events);
  TakeIdle(cluster, now, events);
  BringOne(cluster, waiting, now, events);
  return events;
}

void Autoscaler::Step(ClusterState& state, std::span<const PodRequest> waiting, Instant now) {
  const Status applied = state.Apply(Look(*state.Current(), waiting, now));
  EXPECT_TRUE(applied.has_value()) << applied.error().message;
}

void Autoscaler::GoOn(Instant now, std::vector<ClusterEvent>& events) {
  for (Coming& coming : coming_) {
    if (now - coming.since < rules_.stage) continue;
    coming.since = now;
    NodeSpec spec = coming.whole;
    if (++coming.stage == 1) {
      spec.taints.push_back({kStartUpTaint, "", TaintEffect::kNoSchedule});
      for (const PodBound& daemon : world_.DaemonPodsOn(spec)) events.emplace_back(daemon);
    }
    events.emplace_back(NodeUpserted{spec});
  }
  std::erase_if(coming_, [](const Coming& coming) { return coming.stage >= 2; });
}

void Autoscaler::TakeIdle(const Snapshot& cluster, Instant now, std::vector<ClusterEvent>& events) {
  for (NodeIndex i = 0; i < cluster.size(); ++i) {
    const Node& node = cluster.node(i);
    const std::string& name = node.spec().name;
    const bool is_coming = std::ranges::any_of(
        coming_, [&name](const Coming& coming) { return coming.whole.name == name; });
    const bool used = std::ranges::any_of(node.pods(), [](const auto& pod) {
      return pod->state == PodState::kBound && !pod->life.comes_back;
    });
    if (!node.spec().has_gpus() || used || is_coming || (stays && stays(name))) {
      idle_since_.erase(name);
      continue;
    }
    const Instant since = idle_since_.try_emplace(name, now).first->second;
    if (now - since < rules_.idle) continue;
    for (const auto& pod : node.pods()) {
      if (pod->state == PodState::kBound) events.emplace_back(PodGone{pod->pod.id.uid});
    }
    events.emplace_back(NodeRemoved{name});
    idle_since_.erase(name);
    ++taken_;
    return;  // one at a time
  }
}

void Autoscaler::BringOne(const Snapshot& cluster, std::span<const PodRequest> waiting, Instant now,
                          std::vector<ClusterEvent>& events) {
  std::map<std::string, Instant> still;
  for (const PodRequest& pod : waiting) {
    const auto known = waits_since_.find(pod.id.uid);
    still.emplace(pod.id.uid, known == waits_since_.end() ? now : known->second);
  }
  waits_since_ = std::move(still);
  std::size_t nodes = coming_.size();
  for (NodeIndex i = 0; i < cluster.size(); ++i)
    nodes += cluster.node(i).spec().has_gpus() ? 1u : 0u;
  if (nodes >= rules_.most_nodes || !coming_.empty()) return;
  for (const PodRequest& pod : waiting) {
    if (!pod.shape.wants_gpu() || now - waits_since_.at(pod.id.uid) < rules_.patience) continue;
    for (const NodeSpec& like : world_.nodes()) {
      if (!like.has_gpus()) continue;
      const NodeSpec whole =
          world_.NewNodeLike(like, LabelOf(like, kPool) + "-" + std::to_string(500 + brought_));
      Node empty(std::make_shared<const NodeSpec>(whole));
      for (const PodBound& daemon : world_.DaemonPodsOn(whole)) {
        empty.Put(std::make_shared<const PodRecord>(
            PodRecord{daemon.pod, daemon.placement, PodState::kBound, {}}));
      }
      if (Admits(whole, pod) != Reason::kFits || !PlaceOnNode(empty, pod)) continue;
      NodeSpec bare = whole;
      bare.gpus.clear();
      bare.gpu_resource.clear();
      bare.gpus_to_come = true;
      bare.taints.push_back({kStartUpTaint, "", TaintEffect::kNoSchedule});
      events.emplace_back(NodeUpserted{bare});
      coming_.push_back({whole, now, 0});
      ++brought_;
      return;
    }
  }
}

}  // namespace berth::test
