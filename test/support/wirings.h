// SPDX-License-Identifier: Apache-2.0
//
// Wirings for tests: known machines, random ones, and the same under another numbering.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/machine_files/topo_text.h"
#include "topology/links/gpu_links.h"
#include "topology/links/wiring.h"

namespace berth::test {

// A V100 hybrid cube mesh as a DGX-1 numbers it.
inline LinkMatrix Dgx1V() {
  return *ParseTopoText(
      "      GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7  NUMA\n"
      "GPU0   X    NV1   NV1   NV2   NV2   SYS   SYS   SYS   0\n"
      "GPU1  NV1    X    NV2   NV1   SYS   NV2   SYS   SYS   0\n"
      "GPU2  NV1   NV2    X    NV2   SYS   SYS   NV1   SYS   0\n"
      "GPU3  NV2   NV1   NV2    X    SYS   SYS   SYS   NV1   0\n"
      "GPU4  NV2   SYS   SYS   SYS    X    NV1   NV1   NV2   1\n"
      "GPU5  SYS   NV2   SYS   SYS   NV1    X    NV2   NV1   1\n"
      "GPU6  SYS   SYS   NV1   SYS   NV1   NV2    X    NV2   1\n"
      "GPU7  SYS   SYS   SYS   NV1   NV2   NV1   NV2    X    1\n");
}

// Eight PCIe cards, four of them on each socket; bridges join 0-1, 2-3, 4-5 and 6-7, but the third
// pair has lost its bridge.
inline LinkMatrix BridgedCards() {
  return *ParseTopoText(
      "      GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7  NUMA\n"
      "GPU0   X    NV12  NODE  NODE  SYS   SYS   SYS   SYS   0\n"
      "GPU1  NV12   X    NODE  NODE  SYS   SYS   SYS   SYS   0\n"
      "GPU2  NODE  NODE   X    NV12  SYS   SYS   SYS   SYS   0\n"
      "GPU3  NODE  NODE  NV12   X    SYS   SYS   SYS   SYS   0\n"
      "GPU4  SYS   SYS   SYS   SYS    X    NODE  NODE  NODE  1\n"
      "GPU5  SYS   SYS   SYS   SYS   NODE   X    NODE  NODE  1\n"
      "GPU6  SYS   SYS   SYS   SYS   NODE  NODE   X    NV12  1\n"
      "GPU7  SYS   SYS   SYS   SYS   NODE  NODE  NV12   X    1\n");
}

// Eight GPUs behind NVSwitches; tools hide their PCIe relations; two each are under one PCIe
// root with a NIC, four on each socket.
inline LinkMatrix SwitchedPairs() {
  std::string text = "     ";
  for (int gpu = 0; gpu < 8; ++gpu) text += " GPU" + std::to_string(gpu);
  for (int nic = 0; nic < 4; ++nic) text += " NIC" + std::to_string(nic);
  text += " NUMA\n";
  for (int gpu = 0; gpu < 8; ++gpu) {
    text += "GPU" + std::to_string(gpu);
    for (int other = 0; other < 8; ++other) text += other == gpu ? " X" : " NV18";
    for (int nic = 0; nic < 4; ++nic) {
      text += nic == gpu / 2 ? " PXB" : nic / 2 == gpu / 4 ? " NODE" : " SYS";
    }
    text += " " + std::to_string(gpu / 4) + "\n";
  }
  return *ParseTopoText(text);
}

// Four PCIe cards, a PCIe root and a socket for two each, the NIC on the second socket.
inline LinkMatrix CardsWithOneNic() {
  return *ParseTopoText(
      "      GPU0  GPU1  GPU2  GPU3  NIC0  NUMA\n"
      "GPU0   X    PIX   SYS   SYS   SYS   0\n"
      "GPU1  PIX    X    SYS   SYS   SYS   0\n"
      "GPU2  SYS   SYS    X    PIX   PXB   1\n"
      "GPU3  SYS   SYS   PIX    X    NODE  1\n");
}

inline int Draw(Random& random, int below) {
  return static_cast<int>(random.Below(static_cast<std::uint64_t>(below)));
}

// Few different bandwidths, so that ties are common; one or two NUMA groups.
inline Wiring RandomWiring(Random& random, int gpus) {
  Wiring wiring;
  wiring.gpus = gpus;
  const auto side = static_cast<std::size_t>(gpus);
  wiring.megabytes_per_s.assign(side * side, 0);
  for (std::size_t a = 0; a < side; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const int speeds[] = {9000, 12000, 25000, 50000};
      wiring.megabytes_per_s[a * side + b] = wiring.megabytes_per_s[b * side + a] =
          speeds[Draw(random, 4)];
    }
    wiring.numa.push_back(a * 2 >= side ? 1 : 0);
  }
  return wiring;
}

// A machine as its tools print it: few kinds of links, so that ties are common; one or two NUMA
// nodes, now and then not known.
inline LinkMatrix RandomMatrix(Random& random, int gpus) {
  std::vector<std::string> names;
  for (int gpu = 0; gpu < gpus; ++gpu) names.push_back("GPU" + std::to_string(gpu));
  LinkMatrix matrix = *MakeLinkMatrix(std::move(names), {});
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      const Link kinds[] = {{LinkType::kSys, {}, 0},
                            {LinkType::kPix, {}, 0},
                            {{}, LinkType::kNvlink, 1},
                            {{}, LinkType::kNvlink, 2}};
      matrix.link(a, b) = matrix.link(b, a) = kinds[Draw(random, 4)];
    }
  }
  const int nodes = Draw(random, 5) == 0 ? 0 : 1 + Draw(random, 2);
  for (int gpu = 0; gpu < gpus && nodes > 0; ++gpu) {
    matrix.numa_affinity[static_cast<std::size_t>(gpu)] = std::to_string(Draw(random, nodes));
  }
  return matrix;
}

// What is known of a machine alone in its cluster.
inline GpuLinks LinksOf(const LinkMatrix& matrix) {
  WiringTables tables;
  return GpuLinks(matrix, SpeedsFor(matrix), {LinkSource::kNode, "test"}, tables);
}

inline std::vector<int> RandomNumbering(Random& random, int gpus) {
  std::vector<int> to(static_cast<std::size_t>(gpus));
  std::iota(to.begin(), to.end(), 0);
  random.Shuffle(to);
  return to;
}

// GPU i of the wiring is GPU to[i] of the result.
inline Wiring Renumbered(const Wiring& wiring, const std::vector<int>& to) {
  Wiring result = wiring;
  const auto side = static_cast<std::size_t>(wiring.gpus);
  for (std::size_t a = 0; a < side; ++a) {
    const auto to_a = static_cast<std::size_t>(to[a]);
    result.numa[to_a] = wiring.numa[a];
    for (std::size_t b = 0; b < side; ++b) {
      result.megabytes_per_s[to_a * side + static_cast<std::size_t>(to[b])] =
          wiring.megabytes_per_s[a * side + b];
    }
  }
  return result;
}

}  // namespace berth::test
