// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/arrivals.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/random.h"
#include "base/text.h"
#include "bench/replay/csv.h"

namespace berth::replay {
namespace {

std::vector<std::size_t> UpTo(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

Result<std::vector<std::size_t>> ParseIndices(std::string_view line, std::size_t below) {
  std::vector<std::size_t> indices;
  for (const std::string_view field : SplitFields(line, ' ')) {
    if (field.empty()) continue;
    BERTH_TRY(const std::int64_t index, ParseInt(field, 0, static_cast<std::int64_t>(below) - 1));
    indices.push_back(static_cast<std::size_t>(index));
  }
  return indices;
}

bool IsPermutation(std::vector<std::size_t> indices, std::size_t count) {
  std::ranges::sort(indices);
  return indices == UpTo(count);
}

}  // namespace

Arrivals DrawArrivals(const std::vector<TraceNode>& nodes, const std::vector<TraceTask>& tasks,
                      std::uint64_t seed, double inflate) {
  Random random(seed);
  Arrivals arrivals{UpTo(tasks.size()), UpTo(nodes.size())};
  random.Shuffle(arrivals.tasks);
  const auto wanted =
      static_cast<std::int64_t>(inflate * static_cast<double>(GpuCapacityMilli(nodes)));
  std::int64_t demand = 0;
  for (const TraceTask& task : tasks) demand += GpuDemandMilli(task);
  if (demand > 0) {
    while (demand > wanted && !arrivals.tasks.empty()) {
      const auto victim =
          arrivals.tasks.begin() + static_cast<std::ptrdiff_t>(random.Below(arrivals.tasks.size()));
      demand -= GpuDemandMilli(tasks[*victim]);
      arrivals.tasks.erase(victim);
    }
    while (demand < wanted) {
      const std::size_t drawn = random.Below(tasks.size());
      if (demand + GpuDemandMilli(tasks[drawn]) > wanted) break;
      demand += GpuDemandMilli(tasks[drawn]);
      arrivals.tasks.push_back(drawn);
    }
  }
  random.Shuffle(arrivals.node_rank);
  return arrivals;
}

Result<Arrivals> ReadArrivals(const std::string& path, std::uint64_t seed, std::size_t node_count,
                              std::size_t task_count) {
  BERTH_TRY(const std::string text, ReadTextFile(path));
  const std::vector<NumberedLine> lines = NumberedLines(text);
  const std::string wanted = "seed " + std::to_string(seed) + " ";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].text.starts_with(wanted)) continue;
    const auto place = [&](std::size_t at) {
      return path + ":" + std::to_string(lines[at].number);
    };
    if (i + 2 >= lines.size()) {
      return Invalid(place(i) + ": want two lines after \"seed\", got the end of the file");
    }
    const std::string_view count = SplitFields(lines[i].text.substr(wanted.size()), ' ').front();
    const auto expected = ParseInt(count, 0, std::numeric_limits<std::int64_t>::max());
    if (!expected) return tl::unexpected(Error(expected.error()).Within(place(i)));
    auto tasks = ParseIndices(lines[i + 1].text, task_count);
    if (!tasks) return tl::unexpected(std::move(tasks).error().Within(place(i + 1)));
    if (static_cast<std::int64_t>(tasks->size()) != *expected) {
      return Invalid(place(i + 1) + ": want " + std::string(count) + " tasks, got " +
                     std::to_string(tasks->size()));
    }
    auto nodes = ParseIndices(lines[i + 2].text, node_count);
    if (!nodes) return tl::unexpected(std::move(nodes).error().Within(place(i + 2)));
    if (!IsPermutation(*nodes, node_count)) {
      return Invalid(place(i + 2) + ": want each rank below " + std::to_string(node_count) +
                     " once, got " + std::to_string(nodes->size()) + " numbers");
    }
    return Arrivals{*std::move(tasks), *std::move(nodes)};
  }
  return Fail(Errc::kNotFound, path + ": no seed " + std::to_string(seed));
}

}  // namespace berth::replay
