// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_gpu_facts.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text.h"
#include "topology/gpu_vendor.h"

namespace berth::wire {
namespace {

struct FoundLabel {
  std::string_view key;
  const std::string* value = nullptr;
};

FoundLabel FirstOf(const Labels& labels, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const std::string* const value = FindLabel(labels, key)) return {key, value};
  }
  return {};
}

// NVIDIA's labels, which the configuration has by default, say nothing of other vendors' GPUs.
const std::string* ConfiguredLabel(const Labels& labels, const std::string& key,
                                   std::string_view nvidias, const GpuVendor* vendor) {
  const bool of_other = vendor != nullptr && vendor->name != kNvidiaVendor && key == nvidias;
  return of_other ? nullptr : FindLabel(labels, key);
}

std::string NoMemory(std::string_view key, const std::string& value) {
  return "label " + std::string(key) + ": want an amount of memory such as 64G, got \"" +
         value.substr(0, 40) + "\"";
}

// As the vendor's label says it of a whole GPU; 0 where there is none.
std::int64_t LabelledMib(const Labels& labels, const GpuVendor& vendor, std::string& problem) {
  const auto [key, value] = FirstOf(labels, vendor.memory_labels);
  if (value == nullptr || value->empty()) return 0;
  const auto refuse = [&, key = key, value = value] {
    problem = NoMemory(key, *value);
    return 0;
  };
  if (vendor.memory_unit == MemoryLabelUnit::kMib) {
    const std::int64_t mib = MemoryLabelMib(*value);
    return mib > 0 ? mib : refuse();
  }
  const auto bytes = ParseInt(*value, 1, std::int64_t{1} << 60);
  if (!bytes) return refuse();
  const int gpus = LabelledGpus(labels, vendor);
  return gpus > 0 ? *bytes / gpus >> 20 : 0;
}

// Whether the label is about a part: half of the GPU or less, by the catalogue.
bool IsOfPart(std::int64_t labelled, std::int64_t catalogued) {
  return labelled > 0 && labelled <= catalogued / 2;
}

// Where the memory of a partition is not said it is its part of the GPU's.
std::int64_t PartitionMib(std::int64_t labelled, std::int64_t catalogued, int parts) {
  if (parts == 0 || catalogued == 0) return 0;
  if (IsOfPart(labelled, catalogued)) return labelled;
  return (labelled > 0 ? labelled : catalogued) / parts;
}

// Parts of an AMD GPU at most, where nobody says how it is partitioned: its plugin offers nothing
// but GPUs and parts of them. 0: it has no parts.
int MostParts(std::string_view model) { return PartsPerGpu("cpx", model); }

std::int64_t DevicesOf(const DeviceCount& counted) {
  return std::max(counted.capacity, counted.allocatable);
}

std::string AmdModelOf(std::string_view device_id) {
  constexpr std::string_view kDevices =  // pci.ids, vendor 1002
      "740f MI210,74a0 MI300A,74a1 MI300X,74a2 MI308X,74a5 MI325X,74a9 MI300X,74b5 MI300X_VF,"
      "74b9 MI325X_VF,74bd MI300X_VF,75a0 MI350X,75a3 MI355X,75b0 MI350X_VF,75b3 MI355X_VF,";
  const std::size_t at = kDevices.find(std::string(device_id) + " ");
  if (device_id.size() != 4 || at == kDevices.npos) return "";
  const std::string_view name = kDevices.substr(at + 5);
  return "AMD_Instinct_" + std::string(name.substr(0, name.find(',')));
}

// What is not said yet: the model if it is empty, the memory if memory_said is false.
void AddVendorsFacts(const Labels& labels, const GpuVendor& vendor, const DeviceCount& counted,
                     bool memory_said, NodeGpuFacts& facts) {
  constexpr std::int64_t kMostOnAmds = 8;  // GPUs that can be partitioned
  const std::string& resource = counted.resource;
  if (facts.model.empty()) {
    const FoundLabel model = FirstOf(labels, vendor.model_labels);
    facts.model = model.value != nullptr ? *model.value : ChipOf(vendor, resource);
  }
  if (facts.model.empty() && vendor.name == "amd") {  // its driver does not name every GPU
    facts.model = AmdModelOf(LabelText(labels, "amd.com/gpu.device-id"));
  }
  const GpuResource* const row = FindGpuResource(resource);
  facts.parts = row != nullptr && IsPart(*row, resource);
  std::string_view partitioning = PartitioningOf(resource);
  if (partitioning.empty()) partitioning = LabelText(labels, vendor.partitioning_label);
  int parts = PartsPerGpu(partitioning, facts.model);
  const std::int64_t labelled =
      memory_said ? facts.memory_mib : LabelledMib(labels, vendor, facts.problem);
  const std::int64_t catalogued = CataloguedMemoryMib(facts.model);
  // AMD's plugin has given parts the name of whole GPUs (ROCm/gpu-operator#382).
  const bool unsaid = partitioning.empty();
  const bool may = vendor.name == "amd" && (!unsaid || MostParts(facts.model) > 0);
  const bool by_memory = unsaid && IsOfPart(labelled, catalogued);
  const bool has_parts = by_memory || DevicesOf(counted) > kMostOnAmds;
  if (parts == 1 && may && has_parts) parts = MostParts(facts.model);
  facts.parts = facts.parts || parts != 1;
  if (memory_said) return;
  if (!facts.parts) {
    facts.memory_mib = labelled > 0 ? labelled : catalogued;
  } else if (const std::int64_t named = PartMemoryMib(resource); named > 0) {
    facts.memory_mib = named;
  } else if (!partitioning.empty() || parts > 1) {
    facts.memory_mib = PartitionMib(labelled, catalogued, parts);
  }
}

// What the node's machine type has, or what was attached to it.
struct MachineGpus {
  std::string_view model;
  std::int64_t memory_mib = 0;
  int gpus = 0;
};

// How many a node has, as GKE, Karpenter on Azure and elsewhere, EKS, ACK and CoreWeave say it.
bool SaysHowMany(std::string_view key) {
  return key == "cloud.google.com/gke-accelerator-count" ||
         key == "karpenter.azure.com/sku-gpu-count" || key.ends_with("/instance-gpu-count") ||
         key == "aliyun.accelerator/nvidia_count" || key == "gpu.nvidia.com/count";
}

MachineGpus GpusOfMachine(const Labels& labels, const MachineTypes& types, std::string& problem) {
  const MachineType* const type = types.Find(LabelText(labels, kInstanceTypeLabel));
  if (type != nullptr) return {type->gpu_model, GpuMemoryMibOf(*type), type->gpus};
  const auto said = std::ranges::find_if(labels, SaysHowMany, &Labels::value_type::first);
  const auto count = said == labels.end() ? std::nullopt : CountLabel(labels, said->first, problem);
  if (!count || *count < 1 || *count > kMaxGpusPerNode) return {};
  const GkeAccelerator* const attached =
      FindGkeAccelerator(LabelText(labels, "cloud.google.com/gke-accelerator"));
  if (attached == nullptr) return {{}, 0, static_cast<int>(*count)};
  return {attached->gpu_model, attached->gpu_memory_mib, static_cast<int>(*count)};
}

void AddMachinesFacts(const Labels& labels, const MachineTypes& types, const DeviceCount& counted,
                      NodeGpuFacts& facts) {
  const MachineGpus machine = GpusOfMachine(labels, types, facts.problem);
  const bool amds = machine.model.starts_with("AMD_");
  if (amds != (VendorOf(counted.resource) == "amd")) return;
  facts.machine_gpus = machine.gpus;
  const std::int64_t devices = DevicesOf(counted);
  const int parts = amds && !facts.parts && machine.gpus > 0 && devices > machine.gpus
                        ? MostParts(machine.model)
                        : 0;
  if (parts > 0) {
    if (facts.model.empty()) facts.model = machine.model;
    if (facts.memory_mib == 0) facts.memory_mib = machine.memory_mib;
    facts.memory_mib /= parts;
    facts.parts = true;
  }
  if (facts.parts || !facts.model.empty() || machine.gpus == 0 || devices != machine.gpus) return;
  facts.model = machine.model;
  if (facts.memory_mib > 0) return;
  facts.memory_mib =
      machine.memory_mib > 0 ? machine.memory_mib : CataloguedMemoryMib(machine.model);
}

}  // namespace

std::optional<std::int64_t> CountLabel(const Labels& labels, std::string_view key,
                                       std::string& problem) {
  const std::string_view text = LabelText(labels, key);
  if (text.empty()) return std::nullopt;
  const auto count = ParseInt(text, 0, kMaxGpuPlaces);
  if (count) return *count;
  AddFact(problem, "label " + std::string(key) + ": " + count.error().message);
  return std::nullopt;
}

int LabelledGpus(const Labels& labels, const GpuVendor& vendor) {
  std::string known;  // to ReadNodeGpuFacts
  const auto count = CountLabel(labels, vendor.count_label, known);
  if (count && *count > 0) return static_cast<int>(*count);
  return CountOfNumbers(LabelText(labels, vendor.numbers_label));
}

bool IsGpuMachine(const Labels& labels, const MachineTypes& types) {
  // Of clouds, and of what the operators of NVIDIA, AMD and Habana look for.
  constexpr auto kEnds = std::to_array<std::string_view>(
      {"/gke-accelerator", "azure.com/accelerator", "nvidia.com/gpu", "nvidia.com/gpu.count",
       "nvidia.com/gpu.present", "nvidia.com/gpu.product", "10de.present", "1da3.present", "/gaudi",
       "/amd-gpu", "/amd-vgpu", "/instance-accelerator-count"});
  const auto says_so = [&](const auto& label) {
    const std::string &key = label.first, &value = label.second;
    const auto ends = [&key](std::string_view end) { return key.ends_with(end); };
    const bool counts = std::ranges::any_of(kEnds, ends) || SaysHowMany(key);
    return counts && !value.empty() && value != "false" && value != "0";
  };
  return std::ranges::any_of(labels, says_so) ||
         types.Find(LabelText(labels, kInstanceTypeLabel)) != nullptr;
}

NodeGpuFacts ReadNodeGpuFacts(const Labels& labels, const NodeLabelKeys& keys,
                              const MachineTypes& types, const DeviceCount* counted) {
  const NodeLabelKeys nvidias;
  const GpuVendor* const vendor = counted == nullptr ? nullptr : FindGpuVendor(counted->resource);
  NodeGpuFacts facts;
  if (const auto* model = ConfiguredLabel(labels, keys.gpu_model, nvidias.gpu_model, vendor)) {
    facts.model = *model;
  }
  const auto* const memory =
      ConfiguredLabel(labels, keys.gpu_memory_mib, nvidias.gpu_memory_mib, vendor);
  bool memory_said = memory != nullptr && !memory->empty();
  if (memory_said) {
    facts.memory_mib = MemoryLabelMib(*memory);
    memory_said = facts.memory_mib > 0 || *memory == "0";
    if (!memory_said) facts.problem = NoMemory(keys.gpu_memory_mib, *memory);
  }
  if (vendor != nullptr) {
    AddVendorsFacts(labels, *vendor, *counted, memory_said, facts);
    (void)CountLabel(labels, vendor->count_label, facts.problem);
    for (const char* key : {"nvidia.com/gpu.compute.major", "nvidia.com/cuda.driver-version.major"})
      (void)CountLabel(labels, key, facts.problem);
    AddMachinesFacts(labels, types, *counted, facts);
    const bool of_one = vendor->name == kNvidiaVendor && keys.gpu_model == nvidias.gpu_model;
    if (of_one && !facts.parts) facts.of_product = LabelledGpus(labels, *vendor);
  } else if (!memory_said) {
    facts.memory_mib = CataloguedMemoryMib(facts.model);
  }
  return facts;
}

std::string CureOfNoMig(const NodeSpec& spec) {
  const bool of_aks_pool =
      !LabelText(spec.labels, "kubernetes.azure.com/gpu-instance-profile").empty();
  if (spec.mig.known()) return "";
  if (!of_aks_pool && LabelText(spec.labels, "nvidia.com/mig.capable") != "true") {
    return spec.gpus_to_come ? "it has no device plugin yet: start it" : "";
  }
  const std::string_view os = LabelText(spec.labels, "kubernetes.azure.com/os-sku");
  if (os == "AzureLinux" || os == "Mariner" || os == "CBLMariner") {
    return "AKS has no MIG on Azure Linux; use a node pool with --os-sku Ubuntu";
  }
  if (of_aks_pool) {
    return "its pool has a MIG profile; set MIG_STRATEGY=mixed on its device plugin";
  }
  if (spec.gpus_to_come) {
    return "its device plugin offers nothing; look at label nvidia.com/mig.config.state and at "
           "the plugin's log";
  }
  return "its GPUs are not partitioned; label it nvidia.com/mig.config=all-1g.5gb, or another "
         "layout";
}

}  // namespace berth::wire
