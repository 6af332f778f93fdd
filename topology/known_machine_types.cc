// SPDX-License-Identifier: Apache-2.0
#include "topology/known_machine_types.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/edit_distance.h"

namespace berth {
namespace {

// What the spec says comes before what the row has.
MachineType RowOf(const MachineTypeSpec& spec) {
  const MachineType* const catalogued = FindMachineType(spec.name);
  MachineType row = catalogued != nullptr ? *catalogued : MachineType{};
  row.name = spec.name;
  row.source = "the configuration";
  if (spec.gpu_model) {
    row.gpu_model = *spec.gpu_model;
    row.model_guessed = false;
  }
  row.gpus = spec.gpus.value_or(row.gpus);
  row.gpu_memory_mib = spec.gpu_memory_mib.value_or(row.gpu_memory_mib);
  row.gpu_parts = spec.gpu_parts.value_or(std::max(row.gpu_parts, 1));
  row.rdma = spec.rdma.value_or(row.rdma);
  row.nvme_gib = spec.nvme_gib.value_or(row.nvme_gib);
  row.price_per_hour = spec.price_per_hour.value_or(row.price_per_hour);
  return row;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

MachineTypes::MachineTypes(std::span<const MachineTypeSpec> specs)
    : specs_(specs.begin(), specs.end()) {
  for (const MachineTypeSpec& spec : specs_) rows_.push_back(RowOf(spec));
  std::ranges::sort(rows_, {}, &MachineType::name);
}

const MachineType* MachineTypes::Find(std::string_view name) const {
  const auto row = std::ranges::lower_bound(rows_, name, {}, &MachineType::name);
  return row != rows_.end() && row->name == name ? &*row : FindMachineType(name);
}

std::vector<std::string_view> MachineTypes::NearestTo(std::string_view name,
                                                      std::size_t most) const {
  constexpr std::size_t kMostCharacters = 100;  // time grows with them
  const std::string wanted = Lower(name.substr(0, kMostCharacters));
  std::vector<std::pair<std::size_t, std::string_view>> found;
  const auto add = [&](const MachineType& row) {
    found.emplace_back(EditDistance(wanted, Lower(row.name.substr(0, kMostCharacters))), row.name);
  };
  for (const MachineType& row : rows_) add(row);
  for (const MachineType& row : MachineTypeCatalogue()) {
    if (!std::ranges::binary_search(rows_, row.name, {}, &MachineType::name)) add(row);
  }
  std::ranges::sort(found);
  std::vector<std::string_view> nearest;
  for (const auto& [distance, row] : found) {
    if (nearest.size() < most) nearest.push_back(row);
  }
  return nearest;
}

}  // namespace berth
