// SPDX-License-Identifier: Apache-2.0
//
// ClassMatch: which devices the selectors of a DeviceClass accept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cel/device.h"
#include "cel/program.h"

namespace berth::dialects {

class ClassMatch {
 public:
  // Error: as cel::Program, of the first selector that does not compile.
  static cel::Expected<ClassMatch> Of(const std::vector<std::string>& selectors);

  // Whether all selectors accept the device. Adds what it took to `cost` (cel/program.h). Error: as
  // cel::Program.
  [[nodiscard]] cel::Expected<bool> Matches(const cel::Device& device, std::uint64_t& cost) const;

 private:
  std::vector<cel::Program> programs_;
};

// Whether the selectors can accept nothing but whole GPUs of NVIDIA's driver: among the terms that
// a top-level && joins are these two, with quotes of either kind.
//
//   device.driver == 'gpu.nvidia.com'
//   device.attributes['gpu.nvidia.com'].type == 'gpu'
bool AcceptsOnlyWholeGpus(const std::vector<std::string>& selectors);

}  // namespace berth::dialects
