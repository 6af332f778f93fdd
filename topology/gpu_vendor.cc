// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_vendor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/text.h"
#include "topology/mig/mig_product.h"

namespace berth {
namespace {

// hkust-adsl/kubernetes-scheduler-simulator at 5b6b304, pkg/type/open-gpu-share/utils/const.go:
// bytes as reported by the devices of the openb cluster, in MiB.
constexpr std::string_view kOpenb = "openb simulator, MapGpuTypeMemoryMiB";

// Of AMD's, the sizes that its labels round to (amd.com/gpu.vram); of Huawei's, what its virtual
// NPUs are cut of; of AWS's, what its documents say of a chip.
constexpr std::string_view kAmdSize = "AMD Instinct data sheets; rocm.docs.amd.com, GPU hardware";
constexpr std::string_view kAscendSize =
    "vGPU chart at 00160eb, device-configmap.yaml, memoryCapacity";
constexpr std::string_view kNeuronSize = "awsdocs-neuron.readthedocs-hosted.com, Neuron hardware";

constexpr std::array<GpuModel, 31> kGpuModels = {{
    {"1080", 11178, kOpenb},
    {"2080", 11019, kOpenb},
    {"3090", 24268, kOpenb},
    {"310P", 21527, kAscendSize},
    {"310P3", 21527, kAscendSize},
    {"910A", 32768, kAscendSize},
    {"910B2", 65536, kAscendSize},
    {"910B3", 65536, kAscendSize},
    {"910B4", 32768, kAscendSize},
    {"910B4-1", 65536, kAscendSize},
    {"910C", 65536, kAscendSize},
    {"A10", 22731, kOpenb},
    {"A100", 81251, kOpenb},
    {"M40", 11448, kOpenb},
    {"MI210", 65536, kAmdSize},
    {"MI300A", 131072, kAmdSize},
    {"MI300X", 196608, kAmdSize},
    {"MI308X", 196608, kAmdSize},
    {"MI325", 262144, kAmdSize},
    {"MI325X", 262144, kAmdSize},
    {"MI350X", 294912, kAmdSize},
    {"MI355X", 294912, kAmdSize},
    {"P100", 16280, kOpenb},
    {"P4", 7611, kOpenb},
    {"T4", 15109, kOpenb},
    {"V100M16", 16160, kOpenb},
    {"V100M32", 32510, kOpenb},
    {"inferentia", 8192, kNeuronSize},
    {"inferentia2", 32768, kNeuronSize},
    {"trainium", 32768, kNeuronSize},
    {"trainium2", 98304, kNeuronSize},
}};

// "MI300X" of AMD_Instinct_MI300X_OAM, "910B3" of Ascend910B3; "" of another vendor's.
std::string_view BareProduct(std::string_view name) {
  constexpr std::string_view kAmdBefore = "AMD_Instinct_", kAscendBefore = "Ascend";
  if (name.starts_with(kAscendBefore)) return name.substr(kAscendBefore.size());
  if (!name.starts_with(kAmdBefore)) return {};
  name.remove_prefix(kAmdBefore.size());
  return name.substr(0, name.find('_'));
}

constexpr std::string_view kAmdGuide =
    "ROCm/k8s-device-plugin/docs/user-guide/configuration.md at 0f70a17";
constexpr std::string_view kAscendPlugin =
    "Ascend/ascend-device-plugin at 4cd80a8, pkg/common/constants.go";
constexpr std::string_view kVgpuChart =
    "device-configmap.yaml of the vGPU chart at 00160eb, charts/*/templates/scheduler";

constexpr GpuResource kNvidia[] = {
    {.name = "nvidia.com/gpu", .source = "NVIDIA/k8s-device-plugin, README.md"},
    {.name = "nvidia.com/gpu.shared",
     .source = "NVIDIA/k8s-device-plugin, README.md, renameByDefault"}};

// By strategy single all are amd.com/gpu, by mixed they are called after their partitioning.
constexpr GpuResource kAmd[] = {
    {.name = "amd.com/gpu", .source = kAmdGuide},
    {.name = "amd.com/spx_nps", .family = true, .source = kAmdGuide},
    {.name = "amd.com/dpx_nps", .family = true, .part = true, .source = kAmdGuide},
    {.name = "amd.com/tpx_nps", .family = true, .part = true, .source = kAmdGuide},
    {.name = "amd.com/qpx_nps", .family = true, .part = true, .source = kAmdGuide},
    {.name = "amd.com/cpx_nps", .family = true, .part = true, .source = kAmdGuide}};

// The plugin's *_monitoring resources give access to all GPUs at once and are no GPUs.
constexpr std::string_view kIntelReadme =
    "intel/intel-device-plugins-for-kubernetes at 00d4ebc, cmd/gpu_plugin/README.md";
constexpr GpuResource kIntel[] = {{.name = "gpu.intel.com/i915", .source = kIntelReadme},
                                  {.name = "gpu.intel.com/xe", .source = kIntelReadme}};

// Its own plugin calls all 910 alike (Ascend910), others by chip (Ascend910B3), cloud providers by
// year (ascend-1980). What a name ends with after its last hyphen is a virtual NPU.
constexpr GpuResource kHuawei[] = {
    {.name = "huawei.com/Ascend310", .source = kAscendPlugin},
    {.name = "huawei.com/Ascend310P", .source = kAscendPlugin},
    {.name = "huawei.com/Ascend910", .source = kAscendPlugin},
    {.name = "huawei.com/Ascend", .family = true, .source = kAscendPlugin},
    {.name = "huawei.com/ascend-",
     .family = true,
     .source = "Huawei Cloud CCE, NPU scheduling (huawei.com/ascend-1980)"}};

constexpr GpuResource kHabana[] = {
    {.name = "habana.ai/gaudi", .source = "HabanaAI/gaudi-device-plugin at 2d8e327, README.md"}};

constexpr GpuResource kIluvatar[] = {
    {.name = "iluvatar.com/gpu", .source = "deep-spark/ix-device-plugin, config: IXResourceName"}};
constexpr GpuResource kIluvatarOld[] = {
    {.name = "iluvatar.ai/gpu", .source = "deep-spark/ix-device-plugin, before it was renamed"}};

constexpr std::string_view kCambriconReadme =
    "Cambricon/cambricon-k8s-device-plugin at cc0f773, device-plugin/README.md";
constexpr GpuResource kCambricon[] = {
    {.name = "cambricon.com/mlu", .source = kCambriconReadme},
    {.name = "cambricon.com/mlu", .family = true, .source = kCambriconReadme}};

constexpr std::string_view kHygonGuide =
    "developer.sourcefind.cn, DCU on Kubernetes: standard, vDCU and MIG mode";
constexpr GpuResource kHygon[] = {
    {.name = "hygon.com/dcu", .source = kHygonGuide},
    {.name = "hygon.com/dcu-share-", .family = true, .part = true, .source = kHygonGuide},
    {.name = "hygon.com/dcu-mig-", .family = true, .part = true, .source = kHygonGuide}};

constexpr std::string_view kMetaxGuide =
    "developer.metax-tech.com, Kubernetes component guide (1269/k8s/03_component)";
constexpr GpuResource kMetax[] = {{.name = "metax-tech.com/gpu", .source = kMetaxGuide},
                                  {.name = "metax-tech.com/vfio-gpu", .source = kMetaxGuide}};

constexpr GpuResource kMooreThreads[] = {
    {.name = "mthreads.com/gpu", .source = "docs.mthreads.com, KUAE cloud native guide"}};

constexpr GpuResource kEnflame[] = {
    {.name = "enflame.com/gcu", .source = "EnflameTechnology/gcushare at ee04a65, topscloud.json"}};

constexpr GpuResource kKunlun[] = {{.name = "kunlunxin.com/xpu", .source = kVgpuChart}};

// Its plugin publishes the devices under two names, and their cores under a third, all at once.
constexpr std::string_view kNeuronGuide =
    "awsdocs-neuron.readthedocs-hosted.com, Neuron device plugin";
constexpr GpuResource kNeuron[] = {
    {.name = "aws.amazon.com/neuron", .cores = "aws.amazon.com/neuroncore", .source = kNeuronGuide},
    {.name = "aws.amazon.com/neurondevice",
     .same_as = "aws.amazon.com/neuron",
     .source = kNeuronGuide}};

constexpr GpuVendor kVendors[] = {
    {.name = kNvidiaVendor,
     .domain = "nvidia.com",
     .resources = kNvidia,
     .model_labels = {"nvidia.com/gpu.product", "aliyun.accelerator/nvidia_name"},
     .memory_labels = {"nvidia.com/gpu.memory", "aliyun.accelerator/nvidia_mem"},
     .count_label = "nvidia.com/gpu.count",
     .labels_source = "GPU Feature Discovery 0.20; ACK's node labels"},
    {.name = "amd",
     .domain = "amd.com",
     .resources = kAmd,
     .model_labels = {"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"},
     .memory_labels = {"amd.com/gpu.vram", "beta.amd.com/gpu.vram"},
     .partitioning_label = "amd.com/compute-memory-partition",
     .labels_source = "ROCm/k8s-device-plugin, cmd/k8s-node-labeller at 06c7abd"},
    {.name = "intel",
     .domain = "gpu.intel.com",
     .resources = kIntel,
     .model_labels = {"gpu.intel.com/product"},
     .memory_labels = {"gpu.intel.com/memory.max"},
     .memory_unit = MemoryLabelUnit::kBytesOfAll,
     .count_label = "gpu.intel.com/device.count",
     .numbers_label = "gpu.intel.com/gpu-numbers",
     .labels_source = "intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin/labels.md"},
    {.name = "huawei",
     .domain = "huawei.com",
     .resources = kHuawei,
     .model_labels = {"node.kubernetes.io/npu.chip.name", "accelerator-type"},
     .chip_prefix = "Ascend",
     .labels_source = "Ascend/mind-cluster: ChipNameLabel, AcceleratorType"},
    {.name = "habana", .domain = "habana.ai", .resources = kHabana},
    {.name = "iluvatar", .domain = "iluvatar.com", .resources = kIluvatar},
    {.name = "iluvatar", .domain = "iluvatar.ai", .resources = kIluvatarOld},
    {.name = "cambricon", .domain = "cambricon.com", .resources = kCambricon},
    {.name = "hygon",
     .domain = "hygon.com",
     .resources = kHygon,
     .model_labels = {"hygon.com/dcu.name"},
     .memory_labels = {"hygon.com/dcu.vram"},
     .labels_source = kHygonGuide},
    {.name = "metax",
     .domain = "metax-tech.com",
     .resources = kMetax,
     .model_labels = {"metax-tech.com/gpu.product"},
     .memory_labels = {"metax-tech.com/gpu.memory"},
     .labels_source = "nodes of MetaX's gpu-label, gpu.memory: 64GB"},
    {.name = "mthreads", .domain = "mthreads.com", .resources = kMooreThreads},
    {.name = "enflame",
     .domain = "enflame.com",
     .resources = kEnflame,
     .model_labels = {"enflame.com/gcu.model"},
     .memory_labels = {"enflame.com/gcu.memory"},
     .count_label = "enflame.com/gcu.count",
     .labels_source = "Enflame's gcu-feature-discovery, README.md"},
    {.name = "kunlun", .domain = "kunlunxin.com", .resources = kKunlun},
    {.name = "aws",
     .domain = "aws.amazon.com",
     .resources = kNeuron,
     .model_labels = {"karpenter.k8s.aws/instance-accelerator-name"},
     .labels_source = "Karpenter, well-known labels of instance types"}};

bool IsNameDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view WithoutDomain(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  return slash == std::string_view::npos ? std::string_view() : resource.substr(slash + 1);
}

// The number that a text begins with, and what follows it; nothing where it begins with none.
std::optional<std::int64_t> TakeLeadingNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

// A chip is capitals, digits and hyphens before digits: Ascend910B4-1. What else there is after a
// hyphen is one of other things: the memory or the cores of a chip, or a virtual NPU.
std::string_view EndOfAscend(std::string_view name) {
  const std::size_t hyphen = name.rfind('-');
  if (hyphen == std::string_view::npos) return {};
  const std::string_view end = name.substr(hyphen + 1);
  return std::ranges::all_of(end, IsNameDigit) ? std::string_view() : end;
}

// "10c.3cpu.16g": it has so many cores, CPUs and, if it says so, GiB of memory.
bool IsAscendTemplate(std::string_view end) {
  const auto cores = TakeLeadingNumber(end);
  return cores && end.starts_with('c') && (end.size() == 1 || end[1] == '.');
}

bool FitsFamily(const GpuResource& row, std::string_view resource) {
  if (!resource.starts_with(row.name) || resource.size() == row.name.size()) return false;
  const std::string_view rest = resource.substr(row.name.size());
  if (row.name == "huawei.com/Ascend" || row.name == "huawei.com/ascend-") {
    const std::string_view end = EndOfAscend(rest);
    return IsNameDigit(rest.front()) && (end.empty() || IsAscendTemplate(end));
  }
  if (row.name == "cambricon.com/mlu") {
    // mlu370, mlu370.mim-2m.8gb; not mlu.smlu.vmemory, and not mlu370.share, whose users are many.
    std::string_view after = rest;
    if (!TakeLeadingNumber(after)) return false;
    return after.empty() || after.starts_with(".mim-");
  }
  return IsNameDigit(rest.front());
}

struct AscendTemplate {
  std::string_view chip;  // as the resource has it
  int cores;
  int memory_mib;
};
// vir02 .. vir16 of the 910A, vir01 .. vir04 of the 310P (kVgpuChart).
constexpr std::array<AscendTemplate, 7> kAscendTemplates = {{
    {"910", 2, 2184},
    {"910", 4, 4369},
    {"910", 8, 8738},
    {"910", 16, 17476},
    {"310P", 1, 3072},
    {"310P", 2, 6144},
    {"310P", 4, 12288},
}};

// GiB at the end of a name: ".16g", "-16g", ".8gb".
std::int64_t GibAtTheEnd(std::string_view name) {
  if (name.ends_with('b')) name.remove_suffix(1);
  if (!name.ends_with('g')) return 0;
  name.remove_suffix(1);
  std::size_t begin = name.size();
  while (begin > 0 && IsNameDigit(name[begin - 1])) --begin;
  if (begin == 0 || (name[begin - 1] != '.' && name[begin - 1] != '-')) return 0;
  const auto gib = ParseInt(name.substr(begin), 0, 1 << 20);
  return gib ? *gib : 0;
}

}  // namespace

std::span<const GpuVendor> GpuVendors() { return kVendors; }

const GpuVendor* FindGpuVendor(std::string_view resource) {
  const std::string_view domain = resource.substr(0, resource.find('/'));
  if (domain.size() == resource.size()) return nullptr;
  const auto vendor = std::ranges::find(kVendors, domain, &GpuVendor::domain);
  return vendor == std::end(kVendors) ? nullptr : &*vendor;
}

std::string_view VendorOf(std::string_view resource) {
  if (const GpuVendor* const vendor = FindGpuVendor(resource)) return vendor->name;
  const std::size_t slash = resource.find('/');
  return slash == std::string_view::npos ? std::string_view() : resource.substr(0, slash);
}

const GpuResource* FindGpuResource(std::string_view resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  if (vendor == nullptr) return nullptr;
  for (const GpuResource& row : vendor->resources) {
    if (row.family ? FitsFamily(row, resource) : row.name == resource) return &row;
  }
  return nullptr;
}

bool IsPart(const GpuResource& row, std::string_view resource) {
  if (row.part || !row.family) return row.part;
  if (resource.starts_with("huawei.com/")) return !EndOfAscend(WithoutDomain(resource)).empty();
  return resource.find(".mim-") != std::string_view::npos;
}

std::string_view ChipOf(const GpuVendor& vendor, std::string_view resource) {
  const std::string_view name = WithoutDomain(resource);
  if (vendor.chip_prefix.empty() || !name.starts_with(vendor.chip_prefix)) return {};
  if (!EndOfAscend(name).empty()) return {};
  // Its own plugin calls all 910, 310 and 310P so.
  const std::string_view chip = name.substr(vendor.chip_prefix.size());
  return chip == "910" ? std::string_view() : name;
}

std::int64_t PartMemoryMib(std::string_view resource) {
  constexpr std::int64_t kMibPerGib = 1024;
  const std::string_view name = WithoutDomain(resource);
  if (const std::int64_t gib = GibAtTheEnd(name); gib > 0) return gib * kMibPerGib;
  const std::string_view end = EndOfAscend(name);
  if (!name.starts_with("Ascend") || !IsAscendTemplate(end)) return 0;
  const std::string_view chip = name.substr(6, name.rfind('-') - 6);
  std::string_view rest = end;
  const auto cores = TakeLeadingNumber(rest);
  for (const AscendTemplate& row : kAscendTemplates) {
    if (row.chip == chip && row.cores == *cores) return row.memory_mib;
  }
  return 0;
}

int PartsPerGpu(std::string_view partitioning, std::string_view model) {
  const std::string_view mode = partitioning.substr(0, partitioning.find('_'));
  if (mode.empty() || mode == "spx") return 1;
  if (mode == "dpx") return 2;
  if (mode == "tpx") return 3;
  if (mode == "qpx") return 4;
  if (mode != "cpx") return 0;
  // As many as it has compute dies (XCDs).
  const auto is = [model](std::string_view name) { return model.find(name) != model.npos; };
  if (is("MI308X")) return 4;
  if (is("MI300A")) return 6;
  return is("MI300X") || is("MI325") || is("MI350") || is("MI355") ? 8 : 0;
}

std::string_view PartitioningOf(std::string_view resource) {
  const std::string_view name = WithoutDomain(resource);
  return name.size() > 7 && name.substr(3).starts_with("_nps") ? name : std::string_view();
}

std::string_view CoresOf(std::string_view resource) {
  const GpuResource* const row = FindGpuResource(resource);
  return row == nullptr ? std::string_view() : row->cores;
}

bool AreCores(std::string_view resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  return vendor != nullptr && std::ranges::find(vendor->resources, resource, &GpuResource::cores) !=
                                  vendor->resources.end();
}

std::int64_t MemoryLabelMib(std::string_view text) {
  constexpr std::int64_t kBytesFrom = std::int64_t{1} << 30;
  const auto number = TakeLeadingNumber(text);
  if (!number || *number > std::numeric_limits<std::int64_t>::max() / 1024) return 0;
  if (text.empty() && *number >= kBytesFrom) return *number >> 20;
  if (text.empty() || text == "M" || text == "MB" || text == "Mi" || text == "MiB") return *number;
  return text == "G" || text == "GB" || text == "Gi" || text == "GiB" ? *number * 1024 : 0;
}

int CountOfNumbers(std::string_view text) {
  int count = 0;
  while (TakeLeadingNumber(text)) {
    ++count;
    if (text.empty()) return count;
    if (text.front() != '.') return 0;
    text.remove_prefix(1);
  }
  return 0;
}

std::span<const GpuModel> GpuModelCatalogue() { return kGpuModels; }

const GpuModel* FindGpuModel(std::string_view name) {
  const auto row = std::ranges::lower_bound(kGpuModels, name, {}, &GpuModel::name);
  return row != kGpuModels.end() && row->name == name ? &*row : nullptr;
}

std::int64_t CataloguedMemoryMib(std::string_view name) {
  if (const GpuModel* model = FindGpuModel(name)) return model->memory_mib;
  if (const GpuModel* model = FindGpuModel(BareProduct(name))) return model->memory_mib;
  if (BareGpuProductLabel(name) != name) return 0;  // of a part, or of a GPU with several users
  const MigProduct* const product = MigProductOfLabel(name);
  if (product == nullptr) return 0;
  std::int64_t memory_mib = 0;
  for (const MigRow& row : product->rows()) {
    if (row.memory_units == product->memory_units()) {
      memory_mib = std::max<std::int64_t>(memory_mib, row.memory_mib);
    }
  }
  return memory_mib;
}

}  // namespace berth
