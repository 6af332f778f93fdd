// SPDX-License-Identifier: Apache-2.0
//
// Wiring: the part of a machine's links that decides which GPUs belong together: a bandwidth per
// pair and the NUMA group of each GPU, by GPU index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "topology/gpu_mask.h"
#include "topology/links/link_matrix.h"

namespace berth {

// MB/s in one direction. A matrix does not name its product, so the PCIe generation is inferred
// from the largest NVLink bond: 1-3 is Gen3 (P100, V100), 13 and more Gen5 (Hopper, Blackwell),
// else Gen4.
//
// Sources: NCCL's topo.h for PCIe x16 (12, 24, 48 GB/s), through a CPU 5/6 of it, and socket links
// (Skylake 10, EPYC 16, Sapphire Rapids 22 GB/s); NVLink 2 to 4 have 25 GB/s per link (NVLink 5:
// 50); xGMI 48 GB/s as measured between two MI300X; HCCS 30 GB/s, a third of the 720 Gbit/s of the
// first Ascend 910 (Huawei, Hot Chips 31). PXB, NODE and PSB keep the order of the taxonomy by 5 %.
struct LinkSpeeds {
  int nvlink = 25'000;  // per link
  int xgmi = 48'000;    // per link
  int hccs = 30'000;    // per link
  int board = 0, pix = 0, pxb = 0, phb = 0, node = 0, sys = 0;

  [[nodiscard]] int Of(const Link& link) const;  // unknown counts as sys, the slowest
};
LinkSpeeds SpeedsFor(const LinkMatrix& matrix);
LinkSpeeds SpeedsOfPcie(int generation);  // 3, 4 or 5

struct Wiring {
  int gpus = 0;
  std::vector<int> megabytes_per_s;  // gpus x gpus, symmetric, 0 on the diagonal
  std::vector<int> numa;             // group of each GPU, numbered from 0 by first appearance

  [[nodiscard]] int Between(int a, int b) const {
    return megabytes_per_s[static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus) +
                           static_cast<std::size_t>(b)];
  }
  [[nodiscard]] int Span(GpuMask set) const;            // NUMA groups that a set touches
  [[nodiscard]] int LeastSpan(int size) const;          // of any set of 1..gpus GPUs
  [[nodiscard]] int MostOfOneGroup(GpuMask set) const;  // GPUs
  [[nodiscard]] bool Uniform() const;                   // every pair alike, one NUMA group
  friend bool operator==(const Wiring&, const Wiring&) = default;
};

// The NUMA group of each GPU: from the NUMA column; else from the CPU column; else from PCIe
// relations better than SYS, where every pair has one; else nullopt.
std::optional<std::vector<int>> NumaGroupsOf(const LinkMatrix& matrix);

// The GPUs of each of these groups: by the number of the NUMA node where every GPU has one, else by
// the lowest GPU. Empty where the groups are unknown.
std::vector<GpuMask> NumaNodesOf(const LinkMatrix& matrix);

// If the NUMA groups are unknown, all GPUs are one group.
Wiring WiringOf(const LinkMatrix& matrix, const LinkSpeeds& speeds);
inline Wiring WiringOf(const LinkMatrix& matrix) { return WiringOf(matrix, SpeedsFor(matrix)); }

// Surroundings: what a GPU of a machine has beside it, by its link matrix. Pure functions of it.

// Each set has the GPU itself.
struct Surroundings {
  GpuMask fabric = 0;  // the GPUs that it has a fabric link to
  GpuMask root = 0;    // those under one PCIe root with it: no host bridge is between them
  GpuMask numa = 0;    // those of its NUMA group; all of the machine where the groups are unknown
  LinkType nic = LinkType::kUnknown;  // the best PCIe relation to a NIC; kUnknown without any
};

// By GPU. Tools hide the PCIe relation of two GPUs with NVLinks; such a pair is known to be under
// one root if a NIC is under one root with each of them.
std::vector<Surroundings> SurroundingsOf(const LinkMatrix& matrix);

// Rails: in a rail-optimised fabric NIC i of every node meets on leaf switch i, so that GPUs of the
// same index talk without a spine. A group that takes k GPUs of each of its nodes should therefore
// take the same k indices everywhere. (NCCL's PXN path repairs only part of a mismatch.)

struct RailChoice {
  GpuMask rails = 0;           // bit i = GPU i; 0 where no node has k
  std::size_t aligned = 0;     // nodes that get exactly these
  std::vector<GpuMask> nodes;  // what each node gives: k GPUs, or 0 where it has fewer free
};

// free: per node the GPUs that are free. The rails are the k GPU indices that are free on most
// nodes, the numerically lowest set among equals. A node on which one of them is taken gives as
// many of them as it can, and otherwise its lowest free GPUs. Exact up to 16 GPUs per node (one
// pass over all 65,536 sets); above that, rails are added one by one, each time the one that keeps
// most nodes. Requires: 1 <= k <= 64.
RailChoice AlignRails(std::span<const GpuMask> free, int k);

// The links of a machine when only its GPU product and its number of GPUs are known.
//
// Only boards on which every two GPUs have the same links, so that the GPU numbering does not
// matter, or those of consecutive groups have: a V100 cube mesh comes in four numberings, and PCIe
// cards with any bridges or none. A product is named as the vendor's labels do (gpu_vendor.h), with
// or without "NVIDIA-", "AMD_Instinct_" or "Ascend" before it. What AMD and Huawei add to a name is
// another package or bin of the same: MI300X_OAM, MI300X_VF, 910B4-1.

struct ProductLinks {
  std::string_view product;  // without the vendor
  int gpus;                  // of the machine
  int links;                 // between every two of them, or of a group
  bool guess;                // no machine's own output was seen, or other machines differ
  std::string_view source;   // where the row was read, or what it is guessed from
  LinkType fabric = LinkType::kNvlink;
  int group = 0;  // so many that follow each other are linked, and no others; 0 = all
};
std::span<const ProductLinks> ProductLinksCatalogue();

// The NUMA groups are unknown. nullopt for a product that the catalogue does not have.
std::optional<LinkMatrix> LinksOfProduct(std::string_view product, int gpus);

// SpeedsFor(matrix), with the NVLink speed of that product if it differs from NVLink 2 to 4: P100
// 20 GB/s, the bridges of A40, RTX A6000 and 3090 14 GB/s (as `nvidia-smi nvlink -s` lists them),
// Blackwell 50 GB/s. An empty or unknown product changes nothing.
LinkSpeeds SpeedsFor(const LinkMatrix& matrix, std::string_view product);

// The link with NVIDIA's score of a pair of GPUs, which HAMi publishes: SYS 10, NODE 20, PHB 30,
// PXB 40, PIX 50, PSB 60, plus 100 for each NVLink, at most 18; 0 if the link is unknown; nullopt
// if no link has it. (go-gpuallocator at 876e7b7, besteffort_policy.go.)
std::optional<Link> LinkOfNvidiaScore(std::int64_t score);

}  // namespace berth
