// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/nvidia/nvidia_dialect.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/nvidia/node_mig.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {

namespace {

constexpr std::array kMigResources = {kMigResourcePrefix};

class NvidiaNode final : public wire::NodeReading {
 public:
  explicit NvidiaNode(const wire::NodeFacts& facts) : facts_(facts) {}
  void CountGpus(wire::GpuDraft& draft) override {
    if (const std::string wrong = NriProblem(facts_.labels); !wrong.empty()) {
      draft.AddProblem(wrong);
    }
  }
  void AddMig(wire::MigDraft& draft) override { CompleteNodeMig(facts_, draft); }

 private:
  const wire::NodeFacts facts_;
};

class NvidiaDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "nvidia"; }
  [[nodiscard]] wire::DialectKeys keys() const override { return {.resources = kMigResources}; }
  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    return std::make_unique<NvidiaNode>(facts);
  }
  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    BERTH_TRY(const MigResource device, ParseMigResource(resource));
    ask.mig.Add(device, wire::Capped(amount));
    return {};
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime, wire::Annotations& annotations) const override {
    WriteNri(pod, placement, node, annotations);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeNvidia() { return std::make_unique<NvidiaDialect>(); }

namespace {

constexpr std::size_t kLongestVendor = 63;   // as every value of a label
constexpr std::size_t kLongestKeyName = 63;  // of an annotation, after the '/'
constexpr std::string_view kContainer = "container.";

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsAlphanumeric(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

// Letters, digits and `inside`; the first and the last are no others.
bool IsName(std::string_view text, std::string_view inside) {
  if (text.empty() || !IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::ranges::all_of(text, [inside](char c) {
    return IsAlphanumeric(c) || inside.find(c) != std::string_view::npos;
  });
}

// A vendor without a dot is allowed by CDI and used by nobody: "true" is not meant as one.
bool IsVendor(std::string_view text) {
  return text.size() <= kLongestVendor && IsName(text, "_-.") && IsLetter(text.front()) &&
         text.find('.') != std::string_view::npos;
}

// "VENDOR/gpu=UUID,...": the plugin splits at the commas. "": a GPU has no name.
std::string DeviceNames(std::span<const DeviceGrant> grants, std::string_view vendor,
                        const NodeSpec& node) {
  std::string names;
  for (const DeviceGrant& grant : grants) {
    const std::string& uuid = node.UuidOf(grant.gpu);
    if (!IsName(uuid, "_-.:")) return "";
    if (!names.empty()) names += ',';
    names.append(vendor).append("/gpu=").append(uuid);
  }
  return names;
}

using ByContainer = std::vector<std::pair<std::string, std::vector<DeviceGrant>>>;

bool FitsInKeys(const ByContainer& containers) {
  return containers.size() <= kMostNriContainers &&
         std::ranges::all_of(containers, [](const auto& entry) {
           return kContainer.size() + entry.first.size() <= kLongestKeyName;
         });
}

}  // namespace

std::string_view NriVendor(const Labels& labels) {
  const std::string* const label = FindLabel(labels, kNriLabel);
  return label != nullptr && IsVendor(*label) ? std::string_view(*label) : std::string_view();
}

std::string NriProblem(const Labels& labels) {
  const std::string* const label = FindLabel(labels, kNriLabel);
  if (label == nullptr || IsVendor(*label)) return "";
  return "label " + std::string(kNriLabel) +
         ": want the CDI vendor of the node's GPUs, such as k8s.device-plugin.nvidia.com, got \"" +
         label->substr(0, kLongestVendor) + "\"";
}

void WriteNri(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
              wire::Annotations& annotations) {
  const std::string_view vendor = NriVendor(node.labels);
  if (vendor.empty() || !pod.shape.is_share() || !node.share_agent.empty()) return;
  const std::string all = DeviceNames(placement.grants, vendor, node);
  if (all.empty()) return;
  const ByContainer containers = GrantsByContainer(pod, placement);
  if (!FitsInKeys(containers)) {
    annotations.emplace_back(std::string(kNriPrefix) + "pod", all);
    return;
  }
  for (const auto& [name, grants] : containers) {
    if (grants.empty()) continue;
    annotations.emplace_back(std::string(kNriPrefix).append(kContainer).append(name),
                             DeviceNames(grants, vendor, node));
  }
}

}  // namespace berth::dialects
