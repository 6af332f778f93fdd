// SPDX-License-Identifier: Apache-2.0
//
// MachineTypes: the machine types that are known: those of the catalogue (machine_types.h), and
// those that an operator has configured.
//
// Immutable: any thread may ask.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine_types.h"

namespace berth {

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
