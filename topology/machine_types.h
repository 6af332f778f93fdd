// SPDX-License-Identifier: Apache-2.0
//
// MachineType: what the catalogue knows of a machine type of a cloud.
//
// A node of a cloud names its type in the label node.kubernetes.io/instance-type. That tells how
// many GPUs and which model the node has as a whole before any agent on it has said so: while it is
// starting, and where no agent publishes labels. The catalogue only fills gaps: what a node
// publishes itself takes precedence.
//
// Only types that have a fixed number of GPUs. A GKE node whose GPUs were attached to it (n1-*)
// names them in cloud.google.com/gke-accelerator and gke-accelerator-count: GkeAccelerator. Look up
// the type first: g4-standard-6 has the same gke-accelerator as g4-standard-48, and an eighth of
// its GPU.
//
// Thread-safe: constant data.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

inline constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";

struct MachineType {
  std::string_view name;  // "Standard_ND96isr_H100_v5", "p5.48xlarge", "BM.GPU.H100.8"
  int gpus;               // that the node has as a whole; 1 where it has a part of one

  // As GPU Feature Discovery publishes it ("NVIDIA-H100-80GB-HBM3"), of AMD as its node labeller
  // does ("AMD_Instinct_MI300X_OAM"). The name of a virtual GPU has its size ("NVIDIA-A10-4Q").
  std::string_view gpu_model;
  bool model_guessed;  // put together from the vendor's name: no node's own output was seen

  // MiB of each GPU, or of the part, as its driver reports it; the vendor's size, which is some
  // percent more, where no report was seen. 0: CataloguedMemoryMib(gpu_model) knows it
  // (GpuMemoryMibOf).
  std::int64_t gpu_memory_mib;

  // 1: whole GPUs. n: one GPU that is an n-th of a card; other tenants have the rest. The
  // memory alone does not tell: an eighth of an L4 has an eighth of its speed too.
  int gpu_parts;

  bool rdma;              // has NICs for GPUs: InfiniBand, EFA, RoCE, GPUDirect-TCPX or -TCPXO
  std::int64_t nvme_gib;  // local NVMe that the type always has; 0: none, or the source names none
  std::string_view source;  // where the row was read
  // Of the whole machine, in any currency; 0 = not known: the catalogue has no prices.
  double price_per_hour = 0;
};

// Memory of each GPU, or of the part, of a row in MiB; 0 = not known.
std::int64_t GpuMemoryMibOf(const MachineType& type);

// The resource by which the device plugin of their vendor counts the GPUs: AMD's by the model, all
// others are NVIDIA's.
std::string_view GpuResourceOf(const MachineType& type);

// All rows, sorted by name.
std::span<const MachineType> MachineTypeCatalogue();

// The row of that name (exact match), or nullptr.
const MachineType* FindMachineType(std::string_view name);

// What a value of the label cloud.google.com/gke-accelerator means; fields as in MachineType.
struct GkeAccelerator {
  std::string_view value;  // "nvidia-h100-80gb"
  std::string_view gpu_model;
  bool model_guessed;
  std::int64_t gpu_memory_mib;
  std::string_view source;
};

// All rows, sorted by value.
std::span<const GkeAccelerator> GkeAcceleratorCatalogue();

// The row of that value (exact match), or nullptr.
const GkeAccelerator* FindGkeAccelerator(std::string_view value);

// A label by which a cloud says that it may take the node away at any time.
struct SpotLabel {
  std::string_view key;
  std::string_view value;
  std::string_view source;
};

// All rows, sorted by key.
std::span<const SpotLabel> SpotLabels();

// MachineTypes: the machine types that are known: those of the catalogue (machine_types.h), and
// those that an operator has configured.
//
// Immutable: any thread may ask.

// What an operator says of a machine type; fields as in MachineType. What is not said is as the
// catalogue has it: of a type that it does not have, unknown.
struct MachineTypeSpec {
  std::string name;
  std::optional<int> gpus = {};  // 1..64
  std::optional<std::string> gpu_model = {};
  std::optional<std::int64_t> gpu_memory_mib = {};
  std::optional<int> gpu_parts = {};
  std::optional<bool> rdma = {};
  std::optional<std::int64_t> nvme_gib = {};
  std::optional<double> price_per_hour = {};
  friend bool operator==(const MachineTypeSpec&, const MachineTypeSpec&) = default;
};

class MachineTypes {
 public:
  // Requires: every spec has a name of its own, and GPUs where the catalogue does not know it.
  explicit MachineTypes(std::span<const MachineTypeSpec> specs = {});
  // The rows refer to texts of their own.
  MachineTypes(const MachineTypes&) = delete;
  MachineTypes& operator=(const MachineTypes&) = delete;

  // The row of that name (exact match), or nullptr. It lives as long as this.
  [[nodiscard]] const MachineType* Find(std::string_view name) const;

  // The names that are fewest insertions, deletions and replacements of a character away, whatever
  // the case of letters, the nearest first; at most `most`.
  [[nodiscard]] std::vector<std::string_view> NearestTo(std::string_view name,
                                                        std::size_t most) const;

 private:
  std::deque<MachineTypeSpec> specs_;  // what rows_ refers to
  std::vector<MachineType> rows_;      // the operator's, sorted by name
};

}  // namespace berth
