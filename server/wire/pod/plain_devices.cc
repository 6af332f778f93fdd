// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/plain_devices.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>

#include "base/padded_text.h"
#include "server/wire/json/object_reader.h"

namespace berth::wire {
namespace {

using simdjson::ondemand::document;
using simdjson::ondemand::object;
using simdjson::ondemand::parser;
using simdjson::ondemand::value;

// Each returns whether there is nothing else in it. Of a key that is there twice the last one
// counts where it is a number or a text; of others there may be one.

bool ReadGpu(object fields, std::vector<DeviceGrant>& grants) {
  DeviceGrant grant{-1, 0, 0};
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (key == "uuid") {
      if (content.get_string().error() != simdjson::SUCCESS) return false;
      continue;
    }
    const std::int64_t number = content.get_int64();
    if (number < 0) return false;
    if (key == "index" && number < kMaxGpusPerNode) {
      grant.gpu = static_cast<int>(number);
    } else if (key == "milli" && number <= kMilliPerGpu) {
      grant.milli = static_cast<int>(number);
    } else if (key == "memory_mib" && number <= kMostGrantedMib) {
      grant.memory_mib = number;
    } else {
      return false;
    }
  }
  if (grant.gpu < 0) return false;
  if (std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end()) return false;
  grants.push_back(grant);
  return true;
}

bool ReadContainer(object fields, std::vector<DeviceGrant>& grants) {
  bool known = false;
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    if (key != "gpus" || known) return false;
    known = true;
    for (auto gpu : field.value().get_array()) {
      if (!ReadGpu(gpu.get_object(), grants)) return false;
    }
  }
  return true;
}

bool ReadContainers(object list, GpusByContainer& containers) {
  for (auto field : list) {
    const std::string_view name = field.unescaped_key();
    const auto [container, is_new] = containers.try_emplace(std::string(name));
    if (!is_new || !ReadContainer(field.value().get_object(), container->second)) return false;
  }
  return true;
}

bool ReadAll(object fields, std::string_view node, GpusByContainer& containers) {
  std::int64_t version = 0;
  std::string_view named;
  bool known = false;
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (key == "version") {
      version = content.get_int64();
    } else if (key == "node") {
      named = content.get_string();
    } else if (key != "containers" || known || !ReadContainers(content.get_object(), containers)) {
      return false;
    } else {
      known = true;
    }
  }
  return version == 1 && named == node;
}

}  // namespace

std::optional<GpusByContainer> ReadPlainDevices(std::string_view text, std::string_view node) {
  const PaddedText padded(text);
  GpusByContainer containers;
  try {
    parser json;
    document root = json.iterate(ViewOf(padded));
    const bool is_plain = ReadAll(root.get_object(), node, containers);
    const bool has_ended = root.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (is_plain && has_ended) return containers;
  } catch (const simdjson::simdjson_error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace berth::wire
