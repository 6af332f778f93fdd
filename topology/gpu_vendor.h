// SPDX-License-Identifier: Apache-2.0
//
// GpuVendor: what is known of those whose GPUs Kubernetes counts: the resources by which pods ask
// for them, and the labels in which nodes say what they are. Facts, each with its source; a node
// that says more than its vendor's labels, and a configuration, come before them.
//
// A resource belongs to the vendor of its domain ("amd.com/gpu": amd). One unit of it is a GPU, or
// a fixed part of one that its vendor's device plugin counts: a partition, a virtual NPU. Some
// names are families: what follows the beginning says the chip or the part.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

struct GpuResource {
  std::string_view name;  // of a family: what its names begin with
  bool family = false;
  bool part = false;              // one of them is a part of a GPU; of a family: PartOfName
  std::string_view same_as = {};  // the same devices once more: they are counted as that resource
  std::string_view cores = {};    // counts the cores of the same devices
  std::string_view source = {};   // where it was read
};

// How the value of a memory label is meant that has no unit ("65536", "192G").
enum class MemoryLabelUnit : std::uint8_t {
  kMib,         // of one GPU
  kBytesOfAll,  // of all GPUs of the node
};

struct GpuVendor {
  std::string_view name;    // "amd": the value of metric labels
  std::string_view domain;  // of its resources
  std::span<const GpuResource> resources;
  // Of the following, node labels, or ""; the first that a node has is read.
  std::array<std::string_view, 2> model_labels = {};
  std::array<std::string_view, 2> memory_labels = {};
  MemoryLabelUnit memory_unit = MemoryLabelUnit::kMib;
  std::string_view count_label = {};         // how many GPUs there are
  std::string_view numbers_label = {};       // which ("0.1.2"), where it does not say how many
  std::string_view partitioning_label = {};  // "cpx_nps4"
  // One of its labels names the chip, and resources may too: huawei.com/Ascend910B3.
  std::string_view chip_prefix = {};
  std::string_view labels_source = {};
};

inline constexpr std::string_view kNvidiaVendor = "nvidia";

std::span<const GpuVendor> GpuVendors();  // NVIDIA first

// Of that resource; nullptr where the catalogue does not have the domain.
const GpuVendor* FindGpuVendor(std::string_view resource);

// "amd" of amd.com/gpu; of a domain that is not known the domain; "" of what has none.
std::string_view VendorOf(std::string_view resource);

// The row of that resource; nullptr where there is none.
const GpuResource* FindGpuResource(std::string_view resource);

// Whether one unit of a resource of the row, which may be a family, is a part of a GPU.
bool IsPart(const GpuResource& row, std::string_view resource);

// The chip that a resource names ("Ascend910B3"); "" where it names none for certain.
std::string_view ChipOf(const GpuVendor& vendor, std::string_view resource);

// Memory of one part, as its name says ("mlu370.mim-2m.8gb", "Ascend910-10c.3cpu.16g"), or as the
// vendor's template of that name has it; 0 = not known.
std::int64_t PartMemoryMib(std::string_view resource);

// How many units a GPU is in a partitioning ("cpx_nps4", also as a name in the resource); 1 = whole
// or no partitioning, 0 = not known of that model.
int PartsPerGpu(std::string_view partitioning, std::string_view model);

// The partitioning that a resource names: "cpx_nps4" of amd.com/cpx_nps4, else "".
std::string_view PartitioningOf(std::string_view resource);

// The resource that counts the cores of that one's devices; "" where there is none.
std::string_view CoresOf(std::string_view resource);
// Whether it is one that CoresOf returns.
bool AreCores(std::string_view resource);

// "65536" (in the unit of the label, as MiB), "192G", "64GB", "16384M": MiB; 0 for what is none.
// More than any GPU has are bytes, as GPU Feature Discovery 0.6 writes them.
std::int64_t MemoryLabelMib(std::string_view text);

// How many "0.1.2" are; 0 for what are no numbers.
int CountOfNumbers(std::string_view text);

// GpuModel: what the product catalogue knows of a GPU model.
//
// A model is named as the node publishes it (the value of its model label, "NVIDIA-A100-SXM4-80GB";
// in the openb trace "V100M32"; of AMD and Huawei without "AMD_Instinct_" and "Ascend"). The
// catalogue only fills gaps: values that a node publishes itself take precedence.

struct GpuModel {
  std::string_view name;
  std::int64_t memory_mib;  // of one GPU, as its driver reports it
  std::string_view source;  // where the row was read
};

// All rows, sorted by name.
std::span<const GpuModel> GpuModelCatalogue();

// The row of that name (exact match), or nullptr.
const GpuModel* FindGpuModel(std::string_view name);

// Memory of one GPU of that model: the value of its row, also of "AMD_Instinct_MI300X_OAM" and
// "Ascend910B3", else the memory of a MIG device that takes
// the whole GPU (mig_product.h), which is a little less. 0 if neither is known.
std::int64_t CataloguedMemoryMib(std::string_view name);

}  // namespace berth
