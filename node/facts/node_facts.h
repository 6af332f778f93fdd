// SPDX-License-Identifier: Apache-2.0
//
// NodeFacts: what a probe found on this machine. The probe is a short-lived child process, because
// a driver's library may hang or crash; it prints one JSON object and exits:
//
//   {"gpus": [{"index": 0, "id": "GPU-...", "pci": "0000:17:00.0", "numa": 0}],
//    "mig": [{"gpu": 2, "profile": "1g.10gb", "start": 4, "id": "MIG-..."}],
//    "annotations": {"berth.dev/topology": "...", "berth.dev/gpu-uuids": "..."},
//    "problems": ["NVML: ..."]}
//
// An id is what the device plugin calls the device. "numa" and "pci" are left out where they are
// not known. Values; an object that is not changed is safe to share between threads.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::node {

inline constexpr std::size_t kMostFactsBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMostMigDevices = 64;  // of one GPU
inline constexpr std::size_t kMostFactNics = 64;
inline constexpr std::size_t kMostProblems = 64;
inline constexpr std::size_t kMostProblemBytes = 300;  // longer ones are cut
inline constexpr std::size_t kMostIdBytes = 100;       // of a device

struct GpuFact {
  // Among the GPUs that are given whole, as Berth counts them; one whose id cannot be read is not
  // listed and keeps its number.
  int index = 0;
  std::string id;   // "GPU-...", of AMD's plugin the PCI address
  std::string pci;  // "0000:17:00.0"; "" = not known
  std::optional<int> numa;
  friend bool operator==(const GpuFact&, const GpuFact&) = default;
};

struct MigFact {
  int gpu = 0;          // the number that the driver gives the GPU, as in berth.dev/mig
  std::string profile;  // "1g.10gb"
  int start = 0;        // the first memory slice
  std::string id;       // "MIG-..."
  friend bool operator==(const MigFact&, const MigFact&) = default;
};

struct NodeFacts {
  std::vector<GpuFact> gpus;
  std::vector<MigFact> mig;
  std::map<std::string, std::string> annotations;  // of the Node: key to value
  std::vector<std::string> problems;               // for people: what could not be found out
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// Error: kInvalidArgument with the path of the field; more bytes, GPUs or devices than the bounds.
Result<NodeFacts> ParseFacts(std::string_view text);

// One line. ParseFacts reads the same back.
std::string ToJson(const NodeFacts& facts);

}  // namespace berth::node
