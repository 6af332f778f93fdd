// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a resource.k8s.io DeviceClass (v1), the part that tells which MIG devices an extended
// resource stands for.
#pragma once

#include <simdjson.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cel/device.h"
#include "cel/program.h"
#include "cluster/claims/device_claim.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {

// The profile is what the selectors of the class say, if each is an && of these alone, in any
// order:
//
//   device.driver == 'gpu.nvidia.com'
//   device.attributes['gpu.nvidia.com'].type == 'mig'
//   device.attributes['gpu.nvidia.com'].profile == '1g.5gb'
//
// It is one of whole GPUs if its selectors demand the driver and the type 'gpu' and are read as
// ClassMatch says.
//
// problem: why a class with a name like nvidia.com/mig-1g.5gb has no profile, or not that one, and
// why one with the name of a vendor's GPUs is neither.
// Error: kInvalidArgument for what is not JSON, not a DeviceClass, or has no name.
Result<DeviceClass> DecodeDeviceClass(const PaddedText& text, std::string& problem);

// What claims and classes have in common in JSON: selectors and configuration of devices. They
// throw as object_reader.h says.
inline std::vector<std::string> ReadTexts(simdjson::ondemand::array list) {
  std::vector<std::string> texts;
  for (auto item : list) texts.emplace_back(std::string_view(item.get_string()));
  return texts;
}

// The CEL expressions; unread() is called for a selector of another kind.
template <class Unread>
std::vector<std::string> ReadSelectors(simdjson::ondemand::array selectors, Unread unread) {
  std::vector<std::string> expressions;
  for (auto selector : selectors) {
    bool read = false;
    wire::WithField(selector.get_object(), "cel", [&](simdjson::ondemand::value content) {
      wire::WithField(content.get_object(), "expression", [&](simdjson::ondemand::value text) {
        expressions.push_back(wire::TextOf(text));
        read = true;
      });
    });
    if (!read) unread();
  }
  return expressions;
}

// The profile in `device.attributes['gpu.nvidia.com'].profile == '1g.5gb'`, with quotes of either
// kind and spaces anywhere between; "" for any other CEL expression.
std::string ProfileIn(std::string_view expression);

// The names of the requests, and all else as it is written.
DeviceConfig ReadDeviceConfig(simdjson::ondemand::object fields);

// ClassMatch: which devices the selectors of a DeviceClass accept.

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
