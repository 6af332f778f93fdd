// SPDX-License-Identifier: Apache-2.0
//
// Device selectors: compiling one, and asking it about one device.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "cel/program.h"

namespace berth::micro {
namespace {

cel::Device SelectedGpu() {
  cel::Device device("gpu.nvidia.com");
  device.SetAttribute("type", std::string("gpu"));
  device.SetAttribute("uuid", std::string("GPU-18db0e85-99e9-c746-8531-ffeb86328b39"));
  device.SetAttribute("productName", std::string("NVIDIA H100 80GB HBM3"));
  device.SetAttribute("brand", std::string("Nvidia"));
  device.SetAttribute("architecture", std::string("Hopper"));
  device.SetAttribute("cudaComputeCapability", *cel::Version::Parse("9.0.0"));
  device.SetAttribute("driverVersion", *cel::Version::Parse("580.65.6"));
  device.SetAttribute("resource.kubernetes.io/pcieRoot", std::string("pci0000:00"));
  device.SetCapacity("memory", *cel::Amount::Parse("81559Mi"));
  return device;
}

constexpr const char* kOfClass =
    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";
constexpr const char* kByMemory =
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0";
constexpr const char* kByPattern =
    "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*h100.*$')";

void BM_Selector_Compile(benchmark::State& state, const char* expression) {
  for (auto _ : state) benchmark::DoNotOptimize(cel::Program::Compile(expression));
}
BENCHMARK_CAPTURE(BM_Selector_Compile, of_class, kOfClass);
BENCHMARK_CAPTURE(BM_Selector_Compile, by_memory, kByMemory);
BENCHMARK_CAPTURE(BM_Selector_Compile, by_pattern, kByPattern);

void BM_Selector_Matches(benchmark::State& state, const char* expression) {
  const cel::Device device = SelectedGpu();
  const auto program = cel::Program::Compile(expression);
  for (auto _ : state) benchmark::DoNotOptimize(program->Matches(device));
}
BENCHMARK_CAPTURE(BM_Selector_Matches, of_class, kOfClass);
BENCHMARK_CAPTURE(BM_Selector_Matches, by_memory, kByMemory);
BENCHMARK_CAPTURE(BM_Selector_Matches, by_pattern, kByPattern);
BENCHMARK_CAPTURE(BM_Selector_Matches, by_literal_pattern,
                  "device.attributes['gpu.nvidia.com'].productName.contains('H100')");

}  // namespace
}  // namespace berth::micro
