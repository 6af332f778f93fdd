// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/claims/claim_placer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "scoring/devices/device_picker.h"
#include "scoring/priority.h"

namespace berth::replay {
namespace {

constexpr const char* kDriver = "gpu.nvidia.com";
constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kNuma = "gpu.nvidia.com/numaNode";
constexpr int kMostOfNuma = 4;

NodeDevices DevicesOf(const NodeSpec& node) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = slice->pool = slice->node = node.name;
  slice->driver = kDriver;
  slice->slices_in_pool = 1;
  const auto count = static_cast<std::int64_t>(node.gpus.size());
  for (std::int64_t i = 0; i < count; ++i) {
    PublishedDevice device{.name = "gpu-" + std::to_string(i),
                           .seen = cel::Device(kDriver),
                           .taints = {},
                           .consumes = {}};
    device.seen.SetAttribute("uuid", node.name + "-" + std::to_string(i));
    device.seen.SetAttribute("numaNode", 2 * i / count);
    slice->devices.push_back(std::move(device));
  }
  return {GatherPools({std::move(slice)}), {}};
}

NodeSpec OfSlices(NodeSpec node) {
  GpusByName name{kGpu, {}};
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    node.gpus[i].uuid = node.name + "-" + std::to_string(i);
    name.order.push_back(static_cast<int>(i));
  }
  if (!node.gpus.empty()) node.by_claims = {std::move(name)};
  return node;
}

std::optional<DeviceClass> AnyGpu(std::string_view) {
  DeviceClass gpu;
  gpu.name = kDriver;
  gpu.whole = true;
  gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
  return gpu;
}

int NumberIn(std::string_view device) { return std::stoi(std::string(device.substr(4))); }

}  // namespace

Result<std::unique_ptr<ClaimPlacer>> ClaimPlacer::Create(const ReplayPolicy& policy,
                                                         const std::vector<NodeSpec>& nodes,
                                                         const Options& options) {
  auto mix = std::make_shared<LearnedMix>(policy.learning);
  BERTH_TRY(std::shared_ptr<Engine> engine, Engine::Create({policy.profile, policy.waste, mix}));
  return std::unique_ptr<ClaimPlacer>(
      new ClaimPlacer(nodes, options, std::move(mix), std::move(engine)));
}

ClaimPlacer::ClaimPlacer(const std::vector<NodeSpec>& nodes, const Options& options,
                         std::shared_ptr<LearnedMix> mix, std::shared_ptr<Engine> engine)
    : options_(options),
      mix_(std::move(mix)),
      engine_(std::move(engine)),
      scheduler_(0, options.seed) {
  std::vector<ClusterEvent> events;
  std::vector<std::pair<std::string, NodeDevices>> devices;
  for (const NodeSpec& node : nodes) {
    events.emplace_back(NodeUpserted{OfSlices(node)});
    if (!node.gpus.empty()) devices.emplace_back(node.name, DevicesOf(node));
  }
  BERTH_CHECK(state_.Apply(events).has_value());
  offers_.Put(std::move(devices));
  all_.resize(nodes.size());
  std::iota(all_.begin(), all_.end(), NodeIndex{0});
}

ClaimQuestion ClaimPlacer::QuestionOf(int count) const {
  DeviceWant want{.name = {},
                  .device_class = kDriver,
                  .selectors = {},
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {}};
  DeviceClaim claim{{{"gpus", {std::move(want)}}}};
  if (options_.one_numa && count > 1 && count <= kMostOfNuma) {
    claim.constraints = {{false, kNuma, {}}};
  }
  return ClaimQuestion::Make({std::move(claim)}, AnyGpu).value();
}

std::optional<ClaimPlacer::Chosen> ClaimPlacer::ChooseDevices(
    const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
    const std::vector<NodeIndex>& fitting) {
  const auto priorities = engine_->Prioritize(snapshot, shape, fitting);
  const auto offers = offers_.Current();
  std::vector<ClaimNode> nodes;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const Node& node = snapshot->node(fitting[i]);
    nodes.push_back({node.spec().name, offers->at(node.spec().name).get(), &node, nullptr,
                     kMaxPriority - priorities[i]});
  }
  ClaimQuestion question = QuestionOf(shape.gpu_count());
  const ClaimChoice choice = ChooseForClaims(question, nodes, &shape);
  if (choice.end != SearchEnd::kFound) return std::nullopt;
  Chosen chosen{fitting[choice.node], 0};
  for (const ChosenDevice& device : choice.devices) chosen.gpus |= GpuBit(NumberIn(device.device));
  return chosen;
}

std::optional<ClaimPlacer::Chosen> ClaimPlacer::ChooseNode(
    const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
    std::vector<NodeIndex> fitting) {
  std::vector<std::uint8_t> priorities(fitting.size());
  if (options_.way == ClaimWay::kNodes) {
    priorities = engine_->Prioritize(snapshot, shape, fitting);
  }
  const auto offers = offers_.Current();
  ClaimQuestion question = QuestionOf(shape.gpu_count());
  while (!fitting.empty()) {
    auto best = std::ranges::max_element(priorities) - priorities.begin();
    if (options_.way == ClaimWay::kFirstFit) {
      const NodeIndex node = scheduler_.Choose(*snapshot, shape, fitting, priorities);
      best = std::ranges::find(fitting, node) - fitting.begin();
    }
    const NodeIndex node = fitting[static_cast<std::size_t>(best)];
    const NodeDevices& devices = *offers->at(snapshot->node(node).spec().name);
    const NodeQuestion asked = question.On(devices.pools, devices.taken);
    const PickedDevices picked = FirstFit(asked.question);
    if (picked.end == SearchEnd::kFound) {
      Chosen chosen{node, 0};
      for (const PickedDevice& device : picked.devices) chosen.gpus |= GpuBit(device.device);
      return chosen;
    }
    fitting.erase(fitting.begin() + best);
    priorities.erase(priorities.begin() + best);
  }
  return std::nullopt;
}

Result<std::optional<Placement>> ClaimPlacer::Place(const PodRequest& pod) {
  BERTH_CHECK(std::holds_alternative<WholeGpus>(pod.shape.gpus));
  mix_->Observe(pod.shape);
  engine_->Follow(state_.Current());
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  PodRequest asked = pod;
  asked.shape.gpu_resource = options_.way == ClaimWay::kDevices ? kOfClaims : kGpu;
  const std::vector<Reason> reasons = engine_->Filter(snapshot, asked.shape, all_);
  std::vector<NodeIndex> fitting;
  for (const NodeIndex node : all_) {
    if (reasons[node] == Reason::kFits) fitting.push_back(node);
  }
  if (fitting.empty()) return std::nullopt;
  const auto chosen = options_.way == ClaimWay::kDevices
                          ? ChooseDevices(snapshot, asked.shape, fitting)
                          : ChooseNode(snapshot, asked.shape, std::move(fitting));
  if (!chosen) return std::nullopt;
  const Node& node = snapshot->node(chosen->node);
  asked.shape.gpu_resource = kGpu;  // in the books it has GPUs of the node
  const Placement placement = PlacementFor(node, asked.shape, {chosen->gpus, kMilliPerGpu, 0});
  BERTH_TRY_STATUS(state_.Reserve(asked, placement, Instant::max()));
  BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
  NodeDevices devices = *offers_.Current()->at(node.spec().name);
  ForEachGpu(chosen->gpus, [&](int gpu) {
    devices.taken.emplace(node.spec().name, "gpu-" + std::to_string(gpu));
  });
  std::vector<std::pair<std::string, NodeDevices>> changed;
  changed.emplace_back(node.spec().name, std::move(devices));
  offers_.Put(std::move(changed));
  return placement;
}

}  // namespace berth::replay
