// SPDX-License-Identifier: Apache-2.0
//
// PciTree: where the PCI devices of a machine are, by its sysfs: NUMA nodes, CPUs, NICs, and what
// lies between two devices. Reads files when it is asked; what cannot be read is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/links/link_matrix.h"

namespace berth::node {

// "0000:17:00.0", as sysfs names a device, from what drivers print: upper or lower case, a domain
// of eight digits or none. "" for what is no address.
std::string PciAddress(std::string_view text);
std::string PciAddress(std::uint32_t domain, std::uint32_t bus, std::uint32_t device,
                       std::uint32_t function);

struct Nic {
  std::string name;  // "mlx5_0"
  std::string pci;
};

// Immutable: any thread.
class PciTree {
 public:
  explicit PciTree(std::string sys_root) : root_(std::move(sys_root)) {}

  [[nodiscard]] std::optional<int> NumaNode(const std::string& pci) const;
  // "0-31,64-95"; "" = not known.
  [[nodiscard]] std::string LocalCpus(const std::string& pci) const;

  // kPix ... kSys as nvidia-smi prints them, from the bridges above the two; kUnknown where one of
  // the devices is not there.
  [[nodiscard]] LinkType Between(const std::string& a, const std::string& b) const;

  // The RDMA devices on PCI, but for virtual functions: the first kMostFactNics, mlx5_2 before
  // mlx5_10. `more` becomes the number of those left out.
  [[nodiscard]] std::vector<Nic> Nics(std::size_t& more) const;

 private:
  [[nodiscard]] std::string DeviceFile(const std::string& pci, const char* file) const;
  // The parts of its path from the root complex on: "pci0000:16", "0000:16:01.0", ...
  [[nodiscard]] std::vector<std::string> PathOf(const std::string& pci) const;

  const std::string root_;
};

}  // namespace berth::node
