// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/nvidia/nvidia_dialect.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/node_gpu_facts.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {
namespace {

using wire::AddByDriver;
using wire::MigDraft;
using wire::NodeFacts;

// What the layout depends on.
struct MigFacts {
  const Labels& labels;
  std::string_view product;  // of the label
  std::int64_t gpus = 0;     // whole GPUs
  std::int64_t places = 0;   // on GPUs with several users (node_gpus.cc)
  const std::vector<MigStock>& allocatable;
};

constexpr std::string_view kSingleMark = "-MIG-";
constexpr std::string_view kSharedMark = "-SHARED";

std::optional<std::int64_t> NumberOfLabel(const Labels& labels, std::string_view key) {
  const auto number = ParseInt(LabelText(labels, key), 0, 1'000'000);
  return number ? std::optional(*number) : std::nullopt;
}

std::string LabelKey(const MigProfile& profile, std::string_view what) {
  return MigResourceName(profile) + std::string(what);
}

// How many users a device of that profile has.
std::int64_t ReplicasOf(const Labels& labels, const MigProfile& profile) {
  return std::max<std::int64_t>(NumberOfLabel(labels, LabelKey(profile, ".replicas")).value_or(1),
                                1);
}

// What the product label says behind -MIG-; empty where it does not.
std::string_view SingleText(std::string_view product) {
  const std::size_t mark = product.find(kSingleMark);
  if (mark == std::string_view::npos) return "";
  std::string_view text = product.substr(mark + kSingleMark.size());
  if (text.ends_with(kSharedMark)) text.remove_suffix(kSharedMark.size());
  return text;
}

// Of a strategy single that is valid: what each GPU is.
std::optional<MigProfile> SingleOf(std::string_view product) {
  const std::string text(SingleText(product));
  if (const auto profile = ParseMigProfile(text)) return *profile;
  if (const auto resource = ParseMigResource(std::string(kMigResourcePrefix) + text)) {
    return resource->profile;
  }
  return std::nullopt;
}

// The same of GKE's partitioned GPUs, whose product is not said.
std::optional<MigProfile> GkePartitionOf(const Labels& labels) {
  const auto profile = ParseMigProfile(std::string(LabelText(labels, wire::kGkePartitionLabel)));
  return profile ? std::optional(*profile) : std::nullopt;
}

bool HasCountLabels(const Labels& labels) {
  return std::ranges::any_of(labels, [](const auto& label) {
    return label.first.starts_with(kMigResourcePrefix) && label.first.ends_with(".count");
  });
}

// More than the labels know of cannot be: one of the two is of another time. (Fewer is what
// remains where devices are not healthy.)
bool IsStale(const MigFacts& facts) {
  const Labels& labels = facts.labels;
  if (SingleOf(facts.product)) {
    const auto count = NumberOfLabel(labels, "nvidia.com/gpu.count");
    const auto replicas = NumberOfLabel(labels, "nvidia.com/gpu.replicas").value_or(1);
    return count && facts.gpus + facts.places > *count * std::max<std::int64_t>(replicas, 1);
  }
  if (!HasCountLabels(labels)) return false;
  return std::ranges::any_of(facts.allocatable, [&labels](const MigStock& stock) {
    const MigProfile& profile = stock.resource.profile;
    const std::string key = LabelKey(profile, ".count");
    const auto count = NumberOfLabel(labels, key);
    const bool is_known = count || LabelText(labels, key).empty();
    return is_known && stock.count > count.value_or(0) * ReplicasOf(labels, profile);
  });
}

bool IsPoolOfAks(const Labels& labels) {
  return FindLabel(labels, "kubernetes.azure.com/agentpool") != nullptr &&
         FindLabel(labels, "nvidia.com/mig.config.state") == nullptr;
}

// MIG manager failed before it changed anything: the GPUs cannot be partitioned, or none is and the
// device plugin offers all of them whole.
bool ChangedNothing(const MigFacts& facts) {
  if (LabelText(facts.labels, "nvidia.com/mig.capable") == "false") return true;
  const auto count = NumberOfLabel(facts.labels, "nvidia.com/gpu.count");
  return count && *count > 0 && facts.gpus == *count && facts.places == 0 &&
         SingleText(facts.product).empty() &&
         std::ranges::none_of(facts.allocatable, [](const MigStock& s) { return s.count > 0; });
}

MigTrouble TroubleOf(const MigFacts& facts) {
  const std::string_view state = LabelText(facts.labels, "nvidia.com/mig.config.state");
  if (state == "pending" || state == "rebooting") return MigTrouble::kChanging;
  if (state == "failed" && !ChangedNothing(facts)) return MigTrouble::kFailed;
  if (SingleText(facts.product) == "INVALID") return MigTrouble::kInvalid;
  return IsStale(facts) ? MigTrouble::kStale : MigTrouble::kNone;
}

// How many of the GPUs are not cut.
std::int64_t WholeGpusOf(const MigFacts& facts) {
  const auto replicas = NumberOfLabel(facts.labels, "nvidia.com/gpu.replicas").value_or(1);
  return facts.gpus + facts.places / std::max<std::int64_t>(replicas, 1);
}

// How many are; 0 or less: that is not known.
std::int64_t CutGpusOf(const MigFacts& facts) {
  return NumberOfLabel(facts.labels, "nvidia.com/gpu.count").value_or(0) - WholeGpusOf(facts);
}

// The rows of all instances, the largest first; empty where one is not of the product.
std::vector<int> RowsOf(const MigProduct& product, const std::vector<MigStock>& devices) {
  std::vector<int> rows;
  for (const MigStock& stock : devices) {
    const auto row = product.RowOf(stock.resource.profile);
    if (!row) return {};
    rows.insert(rows.end(), static_cast<std::size_t>(stock.count), *row);
  }
  std::ranges::stable_sort(rows, std::greater<>(), [&](int row) {
    return product.rows()[static_cast<std::size_t>(row)].memory_units;
  });
  return rows;
}

// Each instance onto the GPU with the most free units; empty where they do not fit.
std::vector<MigSet> SpreadOver(const MigProduct& product, const std::vector<int>& rows,
                               std::size_t gpus) {
  std::vector<MigSet> layouts(gpus);
  for (const int row : rows) {
    std::vector<std::size_t> order(gpus);
    for (std::size_t i = 0; i < gpus; ++i) order[i] = i;
    std::ranges::stable_sort(
        order, {}, [&](std::size_t gpu) { return std::popcount(product.UnitsOf(layouts[gpu])); });
    const bool placed = std::ranges::any_of(
        order, [&](std::size_t gpu) { return AddByDriver(product, row, layouts[gpu]); });
    if (!placed) return {};
  }
  return layouts;
}

int UnitsOf(const MigProduct& product, const std::vector<int>& rows) {
  int units = 0;
  for (const int row : rows) units += product.rows()[static_cast<std::size_t>(row)].memory_units;
  return units;
}

std::vector<MigSet> LayOut(const MigProduct& product, const std::vector<int>& rows,
                           std::int64_t labelled) {
  if (labelled > 0 && labelled <= kMaxGpusPerNode) {
    auto layouts = SpreadOver(product, rows, static_cast<std::size_t>(labelled));
    if (!layouts.empty()) return layouts;
  }
  const auto least = static_cast<std::size_t>(UnitsOf(product, rows) / product.memory_units());
  for (std::size_t gpus = std::max<std::size_t>(least, 1); gpus <= kMaxGpusPerNode; ++gpus) {
    auto layouts = SpreadOver(product, rows, gpus);
    if (!layouts.empty()) return layouts;
  }
  return {};
}

// As many devices as there are on each of so many GPUs, where that is known; else each on a GPU of
// its own: a product whose profiles have one place each.
void ByNumberAlone(const MigFacts& facts, const std::vector<MigStock>& devices, MigSpec& spec,
                   MigLibrary& library) {
  std::int64_t total = 0;
  for (const MigStock& stock : devices) total += stock.count;
  const std::int64_t gpus = std::clamp<std::int64_t>(CutGpusOf(facts), 0, total);
  const std::int64_t per_gpu = gpus > 0 ? (total + gpus - 1) / gpus : 1;
  const auto each = static_cast<int>(per_gpu <= kMaxMigUnits ? per_gpu : 1);
  MigProductSpec product;
  product.name = facts.product.empty() ? "unknown" : BareGpuProductLabel(facts.product);
  product.compute_slices = each;
  product.memory_units = each;
  for (const MigStock& stock : devices) {
    MigRow& row = product.rows.emplace_back();
    row.profile = stock.resource.profile;
    row.memory_units = 1;
    row.max_instances = each;
    row.starts = static_cast<MigUnits>((1U << each) - 1);
    row.source = "the node's resources";
  }
  auto made = MigProduct::Make(std::move(product));
  if (!made) return;
  spec.product = library.Keep(*std::move(made));
  int at = each;
  for (std::size_t row = 0; row < devices.size(); ++row) {
    for (int i = 0; i < devices[row].count; ++i, ++at) {
      if (at == each) {
        const auto index = static_cast<int>(WholeGpusOf(facts) + std::ssize(spec.gpus));
        spec.gpus.push_back({index, "", 0});
        at = 0;
      }
      spec.gpus.back().instances |= MigSet{1}
                                    << *spec.product->PlacementAt(static_cast<int>(row), at);
    }
  }
}

void AssumeLayout(const MigFacts& facts, const std::vector<MigStock>& devices, MigSpec& spec,
                  MigLibrary& library) {
  if (devices.empty()) return;
  if (const MigProduct* product = MigProductOfLabel(facts.product)) {
    const std::vector<int> rows = RowsOf(*product, devices);
    const auto layouts =
        rows.empty() ? std::vector<MigSet>() : LayOut(*product, rows, CutGpusOf(facts));
    if (!layouts.empty()) spec.product = MigLibrary::Catalogued(*product);
    // More memory than its GPUs have: some devices are of a layout before.
    const auto gpus = NumberOfLabel(facts.labels, "nvidia.com/gpu.count").value_or(0);
    const bool exceed = gpus > 0 && UnitsOf(*product, rows) > gpus * product->memory_units();
    if (exceed) spec.trouble = MigTrouble::kStale;
    for (const MigSet instances : layouts) {
      const auto index = static_cast<int>(WholeGpusOf(facts) + std::ssize(spec.gpus));
      spec.gpus.push_back({index, "", instances});
    }
  }
  if (spec.gpus.empty()) ByNumberAlone(facts, devices, spec, library);
}

// Takes away the instances, from the last GPU on, where fewer are allocatable: some are not
// healthy, and the kubelet does not say which.
void KeepAllocatable(const std::vector<MigStock>& devices, MigSpec& spec) {
  if (spec.dynamic || spec.allocator == MigAllocator::kBerth) return;
  for (int row = 0; spec.product && row < static_cast<int>(spec.product->rows().size()); ++row) {
    int left = 0;
    for (const MigStock& stock : devices) {
      if (spec.product->RowOf(stock.resource.profile) == row) left += stock.count;
    }
    for (MigGpu& gpu : spec.gpus) {
      for (MigSet set = gpu.instances & spec.product->PlacementsOf(row); set != 0; set &= set - 1) {
        if (--left < 0) gpu.instances &= ~(set & (~set + 1));
      }
    }
  }
}

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
    BERTH_TRY(const MigResource device, Within(ParseMigResource(resource), resource));
    ask.mig.Add(device, wire::Capped(amount));
    return {};
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime, wire::Annotations& annotations) const override {
    WriteNri(pod, placement, node, annotations);
  }
};

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

void CompleteNodeMig(const NodeFacts& node, MigDraft& draft) {
  constexpr std::int64_t kMostDevices = kMaxGpusPerNode * kMaxMigUnits;
  const MigFacts facts{node.labels, node.product, draft.gpus, draft.places, draft.allocatable};
  std::vector<MigStock> devices, shared;
  for (const MigStock& stock : facts.allocatable) {
    if (stock.count <= 0) continue;  // the kubelet keeps names that are gone
    for (const char* what : {".count", ".replicas"})
      (void)wire::CountLabel(facts.labels, LabelKey(stock.resource.profile, what), draft.problem);
    const bool several =
        stock.resource.shared || ReplicasOf(facts.labels, stock.resource.profile) > 1;
    (several ? shared : devices).push_back(stock);
  }
  std::int64_t total = 0;
  for (const MigStock& stock : devices) total += stock.count;
  if (total > kMostDevices) {
    draft.AddProblem("allocatable: want at most " + std::to_string(kMostDevices) +
                     " MIG devices, got " + std::to_string(total));
    devices.clear();
  }
  MigSpec spec;
  if (draft.spec) {
    spec = *std::move(draft.spec);
    KeepAllocatable(devices, spec);
  } else {
    AssumeLayout(facts, devices, spec, node.library);
  }
  spec.shared = std::move(shared);
  if (facts.places == 0) spec.single = SingleOf(facts.product);
  if (facts.places == 0 && !spec.single) spec.single = GkePartitionOf(facts.labels);
  const std::string_view partition = LabelText(facts.labels, wire::kGkePartitionLabel);
  if (!partition.empty() && !GkePartitionOf(facts.labels)) {
    draft.AddProblem("label " + std::string(wire::kGkePartitionLabel) +
                     ": want a MIG profile such as 1g.5gb, got \"" +
                     std::string(partition.substr(0, 40)) + "\"");
  }
  if (!spec.gpus.empty() && !spec.dynamic && IsPoolOfAks(facts.labels)) spec.fixed = true;
  if (spec.single) spec.single_memory_mib = draft.gpu_memory_mib;
  const MigTrouble trouble = TroubleOf(facts);
  if (trouble != MigTrouble::kNone) spec.trouble = trouble;
  const bool any = !spec.gpus.empty() || !spec.shared.empty() || spec.single ||
                   spec.trouble != MigTrouble::kNone;
  draft.spec = any ? std::optional(std::move(spec)) : std::nullopt;
}

std::unique_ptr<const wire::Dialect> MakeNvidia() { return std::make_unique<NvidiaDialect>(); }

std::string_view NriVendor(const Labels& labels) {
  const std::string_view label = LabelText(labels, kNriLabel);
  return IsVendor(label) ? label : std::string_view();
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
  if (!pod.shape.share_agent.empty()) return;  // its agent gives the container its GPU
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
