// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_traits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/dialect.h"

namespace berth::wire {
namespace {

constexpr std::string_view kNfd = "Node Feature Discovery's rules of both names, old and new";
constexpr auto kRdmaLabels =
    std::to_array<SpotLabel>({{"feature.node.kubernetes.io/custom-rdma.available", "true", kNfd},
                              {"feature.node.kubernetes.io/custom-rdma.capable", "true", kNfd},
                              {"feature.node.kubernetes.io/rdma.available", "true", kNfd},
                              {"feature.node.kubernetes.io/rdma.capable", "true", kNfd}});

constexpr std::string_view kGke = "docs.cloud.google.com, About Local SSD for GKE";
constexpr auto kNvmeLabels =
    std::to_array<SpotLabel>({{"cloud.google.com/gke-ephemeral-storage-local-ssd", "true", kGke},
                              {"cloud.google.com/gke-local-nvme-ssd", "true", kGke}});
// Its value is the size in GiB (karpenter.sh/docs, Well-Known Labels).
constexpr std::string_view kKarpenterNvme = "karpenter.k8s.aws/instance-local-nvme";

// learn.microsoft.com/azure/aks/node-image-upgrade.
constexpr std::string_view kAksImage = "kubernetes.azure.com/node-image-version";

bool HasAny(const Labels& labels, std::span<const SpotLabel> rows) {
  return std::ranges::any_of(
      rows, [&](const SpotLabel& row) { return LabelText(labels, row.key) == row.value; });
}

// learn.microsoft.com/azure/aks/node-auto-drain; aws/aws-node-termination-handler,
// pkg/node/node.go; GoogleCloudPlatform/k8s-node-termination-handler, README.
constexpr std::array<std::string_view, 6> kLeavingTaints = {
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/rebalance-recommendation",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "remediator.kubernetes.azure.com/unschedulable"};

bool SaysSo(const std::vector<Taint>& taints) {
  return std::ranges::any_of(taints, [](const Taint& taint) {
    return std::ranges::find(kLeavingTaints, taint.key) != kLeavingTaints.end();
  });
}

bool IsNvlink(const Link& link) { return link.fabric == LinkType::kNvlink; }

bool HasNvlink(const GpuLinks& links) {
  const LinkMatrix& matrix = links.matrix();
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    for (int b = 0; b < a; ++b) {
      if (IsNvlink(matrix.link(a, b))) return true;
    }
  }
  return false;
}

bool HasNvswitch(const GpuLinks& links) {
  const LinkMatrix& matrix = links.matrix();
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    int to_others = 0;
    for (int b = 0; b < matrix.gpu_count(); ++b) {
      if (a == b) continue;
      if (!IsNvlink(matrix.link(a, b))) return false;
      to_others += matrix.link(a, b).fabric_links;
    }
    if (to_others <= kMaxNvlinks) return false;
  }
  return matrix.gpu_count() > 0;
}

int GpusOf(const NodeSpec& spec) {
  if (spec.places.count > 0) return spec.places.gpus;
  const std::size_t partitioned = spec.mig.known() ? spec.mig->gpus.size() : 0;
  return static_cast<int>(spec.gpus.size() + partitioned);
}

constexpr std::string_view kSet = "true";
constexpr std::size_t kMostText = 256;  // others may write what they like

}  // namespace

// learn.microsoft.com/azure/aks/node-problem-detector.
bool SaysThatItLeaves(std::string_view condition) { return condition == "VMEventScheduled"; }

std::string_view MachineFamily(std::string_view type) {
  constexpr std::string_view kAzure = "Standard_";
  if (type.starts_with(kAzure)) {
    type.remove_prefix(kAzure.size());
    return type.substr(0, type.find_first_of("0123456789"));
  }
  if (type.starts_with("BM.") || type.starts_with("VM.")) return type.substr(0, type.rfind('.'));
  return type.substr(0, type.find_first_of(".-"));
}

NodeTraits::NodeTraits(const Config& config, std::shared_ptr<const MachineTypes> types)
    : price_label_(config.node_labels.price_per_hour), types_(std::move(types)) {
  for (const TraitConfig& trait : config.traits) {
    auto labels = ParseSelector(trait.labels);
    BERTH_CHECK(labels.has_value());  // the configuration was validated
    own_.push_back({trait.name, *std::move(labels), trait.resource});
  }
}

bool NodeTraits::Reads(std::string_view resource) const {
  return IsRdma(resource) || std::ranges::find(own_, resource, &OwnTrait::resource) != own_.end();
}

std::string NodeTraits::AddTo(NodeSpec& spec, std::span<const std::string> resources) const {
  const auto add = [&spec](std::string_view trait, bool has) {
    if (has) spec.traits.emplace_back(trait);
  };
  const std::string_view type_name = LabelText(spec.labels, kInstanceTypeLabel);
  const std::string_view image = LabelText(spec.labels, kAksImage);
  const MachineType* const type = types_->Find(type_name);
  add(kTraitRdma, std::ranges::any_of(resources, IsRdma) || HasAny(spec.labels, kRdmaLabels) ||
                      (type != nullptr && type->rdma));
  add(kTraitNvlink, spec.links.known() && HasNvlink(spec.links));
  add(kTraitNvswitch, spec.links.known() && HasNvswitch(spec.links));
  add(kTraitNvme, HasAny(spec.labels, kNvmeLabels) ||
                      FindLabel(spec.labels, kKarpenterNvme) != nullptr ||
                      (type != nullptr && type->nvme_gib > 0));
  add(kTraitSpot, HasAny(spec.labels, SpotLabels()));
  add(kTraitLeaving, SaysSo(spec.taints) || SaysSo(spec.soft_taints));
  add(kTraitMig, spec.mig.known());
  add(kTraitShared, spec.places.count > spec.places.gpus || !spec.share_agent.empty());
  add(std::string(kFamilyPrefix).append(MachineFamily(type_name)), !type_name.empty());
  add(std::string(kImagePrefix).append(image), !image.empty());
  for (const OwnTrait& own : own_) {
    const bool offers =
        own.resource.empty() || std::ranges::find(resources, own.resource) != resources.end();
    add(own.name, offers && Selects(own.labels, spec.labels));
  }
  std::ranges::sort(spec.traits);
  spec.traits.erase(std::unique(spec.traits.begin(), spec.traits.end()), spec.traits.end());

  const int gpus = GpusOf(spec);
  if (gpus == 0) return "";
  if (type != nullptr) spec.gpu_price = type->price_per_hour / gpus;
  const std::string* const said = FindLabel(spec.labels, price_label_);
  if (said == nullptr) return "";
  const auto price = ReadNumber<double>(*said);
  if (!price || *price <= 0 || *price >= 1e6) {
    return "label " + price_label_ + ": want a price above 0 such as 12.5, got \"" +
           said->substr(0, 40) + "\"";
  }
  spec.gpu_price = *price / gpus;
  return "";
}

void NodeHold::Take(std::string_view key, std::string_view text) {
  text = text.substr(0, kMostText);
  if (key == kHoldMark) mark = text;
  for (std::size_t i = 0; i < kHoldKeys.size(); ++i) {
    if (key == kHoldKeys[i]) texts[i] = text.empty() ? " " : text;
  }
}

std::string EncodeHold(const NodeHold& now, bool hold) {
  Json annotations = Json::object();
  std::string mark;
  for (std::size_t i = 0; i < kHoldKeys.size(); ++i) {
    const std::string key(kHoldKeys[i]);
    const bool is_ours = now.mark.find(key) != std::string::npos && now.texts[i] == kSet;
    if (hold && (is_ours || now.texts[i].empty())) {
      mark += (mark.empty() ? "" : ",") + key;
      annotations[key] = kSet;
    } else if (!hold && is_ours) {
      annotations[key] = nullptr;
    }
  }
  if (hold ? mark.empty() || mark == now.mark : now.mark.empty()) return "";
  annotations[std::string(kHoldMark)] = hold ? Json(mark) : Json(nullptr);
  return JsonText({{"metadata", {{"annotations", std::move(annotations)}}}});
}

}  // namespace berth::wire
