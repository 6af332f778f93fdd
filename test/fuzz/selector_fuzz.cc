// SPDX-License-Identifier: Apache-2.0
//
// Any text as a device selector: compiled, and asked twice about one device, it says the same and
// stays within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cel/program.h"

namespace {

using berth::cel::Amount;
using berth::cel::Device;
using berth::cel::Version;

Device Gpu() {
  Device device("gpu.nvidia.com");
  device.SetAttribute("type", std::string("gpu"));
  device.SetAttribute("index", std::int64_t{3});
  device.SetAttribute("healthy", true);
  device.SetAttribute("version", *Version::Parse("580.65.6-rc.1"));
  device.SetAttribute("modes", std::vector<std::string>{"compute", "graphics"});
  device.SetAttribute("sizes", std::vector<std::int64_t>{1, 2, 3});
  device.SetAttribute("a.example/name", std::string("\xc3\xbc"));
  device.SetCapacity("memory", *Amount::Parse("81559Mi"));
  device.SetCapacity("cores", *Amount::Parse("1.5"));
  return device;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Device kDevice = Gpu();
  const auto program = berth::cel::Program::Compile({reinterpret_cast<const char*>(data), size});
  if (!program) return 0;
  berth::cel::Program::Effort effort, again;
  const auto matches = program->Matches(kDevice, &effort);
  const auto same = program->Matches(kDevice, &again);
  if (matches.has_value() != same.has_value() || effort.cost != again.cost) std::abort();
  if (matches && *matches != *same) std::abort();
  return 0;
}
