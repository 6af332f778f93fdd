// SPDX-License-Identifier: Apache-2.0
//
// LinkMatrix: how the GPUs and NICs of one machine are linked, as its tools print it.
//
// A pair has a PCIe relation, a fabric (NVLink, xGMI, HCCS), or both. `nvidia-smi topo -m` hides
// the PCIe relation of a pair with NVLinks; what knows both keeps both. Values, safe to share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

// Worst to best, the levels of NVML's nvmlGpuTopologyLevel_t; from kHccs on they are fabrics.
enum class LinkType : std::uint8_t {
  kUnknown,  // not printed, or not known
  kSys,      // crosses the socket interconnect ("SOC" before 2017)
  kNode,     // crosses host bridges inside one NUMA node
  kPhb,      // crosses a PCIe host bridge
  kPxb,      // several PCIe bridges, no host bridge
  kPix,      // at most one PCIe bridge
  kBoard,    // two GPUs on one board ("PSB")
  kHccs,     // of Huawei's Ascend
  kXelink,   // Xe Link
  kXgmi,     // of AMD's
  kNvlink,
};

inline constexpr int kMaxGpus = 64;     // of one machine: a set of GPUs is one 64-bit mask
inline constexpr int kMaxNics = 256;    // of one machine
inline constexpr int kMaxNvlinks = 36;  // between two GPUs (announced for Rubin)
inline constexpr std::size_t kMaxTopologyBytes = 1 << 20;  // of a file that describes a machine

struct Link {
  LinkType pcie = LinkType::kUnknown;    // kUnknown..kBoard
  LinkType fabric = LinkType::kUnknown;  // kHccs..kNvlink, or kUnknown for none
  std::uint8_t fabric_links = 0;         // bonded links of the fabric, 0..kMaxNvlinks

  [[nodiscard]] bool known() const {
    return pcie != LinkType::kUnknown || fabric != LinkType::kUnknown;
  }
  friend bool operator==(const Link&, const Link&) = default;
};

// As the vendors' tools print it: "NV12", "XGMI", "HCCS", "PIX", ..., "?" for kUnknown. Fabric
// before PCIe.
std::string LinkText(const Link& link);

// "PIX" -> kPix, "SOC" and "SYS" -> kSys, ...; nullopt for what is no PCIe relation.
std::optional<LinkType> ParsePcieRelation(std::string_view text);

struct LinkMatrix {
  std::vector<std::string> gpus;         // names, at most kMaxGpus
  std::vector<std::string> nics;         // names of the NIC columns, at most kMaxNics
  std::vector<std::string> nic_devices;  // of the NIC legend, one per NIC; empty without a legend
  std::vector<Link> cells;  // row-major, GPUs before NICs; symmetric; the diagonal is kUnknown
  std::vector<std::string> cpu_affinity;   // one per GPU, as printed: "0-19,40-59", "N/A", ""
  std::vector<std::string> numa_affinity;  // the same: "0", "0-7", "0,2-17"
  std::vector<std::string> warnings;       // what was odd about the text

  [[nodiscard]] int gpu_count() const { return static_cast<int>(gpus.size()); }
  [[nodiscard]] int device_count() const { return static_cast<int>(gpus.size() + nics.size()); }
  [[nodiscard]] const std::string& name(int device) const;

  [[nodiscard]] Link& link(int a, int b) { return cells[IndexOf(a, b)]; }
  [[nodiscard]] const Link& link(int a, int b) const { return cells[IndexOf(a, b)]; }
  [[nodiscard]] const Link& gpu_nic(int gpu, int nic) const { return link(gpu, gpu_count() + nic); }
  friend bool operator==(const LinkMatrix&, const LinkMatrix&) = default;

 private:
  [[nodiscard]] std::size_t IndexOf(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(device_count()) +
           static_cast<std::size_t>(b);
  }
};

// An empty matrix with these devices, every link unknown. Error: too many of them, or no GPU.
Result<LinkMatrix> MakeLinkMatrix(std::vector<std::string> gpus, std::vector<std::string> nics);

// Fills cells that are known in the other direction only. Error: a pair whose two ends differ, with
// the line of its row if row_lines (one per device, 0 for none) has one.
Status CompleteBySymmetry(LinkMatrix& matrix, std::span<const int> row_lines = {});

// The NUMA node of the CPUs next to a GPU: "3" -> 3, and of "0,2-17" (Grace: the range are nodes of
// GPU memory) 0. nullopt for a range ("0-7", as cgroups leave it), "N/A" and "".
std::optional<int> NumaNodeOf(std::string_view numa_affinity);

}  // namespace berth
