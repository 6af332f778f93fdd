// SPDX-License-Identifier: Apache-2.0
//
// Search: finds the best point of the unit cube for a function that is a mean over cases. Each case
// costs one evaluation.
//
// First half of the budget, successive halving (Jamieson and Talwalkar, AISTATS 2016): the given
// start and a Latin hypercube of points, on few cases; the better half goes on to twice as many,
// until one is left or all cases are looked at. Then a pattern search by coordinates from the best:
// a step up and down along each, halved after a round without a gain, until the budget is spent.
// The cases are shuffled first, so that few of them are a fair sample. Deterministic by its seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/lab/tune/knobs.h"

namespace berth::replay {

struct SearchOptions {
  std::size_t cases = 1;   // > 0
  std::size_t budget = 1;  // evaluations; at least 2 * cases, so that two points can be compared
  std::uint64_t seed = 42;
};

// The values of points at cases, in that order; higher is better. Called with several at a time so
// that they can be worked on in parallel.
using Evaluations = std::vector<std::pair<Point, std::size_t>>;
using Evaluate = std::function<Result<std::vector<double>>(const Evaluations&)>;

struct SearchResult {
  Point best;
  double best_value = 0;   // mean over all cases
  double start_value = 0;  // mean over all cases, of the start
  std::size_t evaluations = 0;
};

// A Latin hypercube: no two points share a slice of any axis.
std::vector<Point> LatinHypercube(std::size_t dimensions, std::size_t points, std::uint64_t seed);

// `same` maps a point to the one that stands for all that mean the same (values of whole numbers
// do): none is evaluated twice. Error: kInvalidArgument for too small a budget; that of `evaluate`.
Result<SearchResult> Search(const Point& start, const SearchOptions& options,
                            const std::function<Point(const Point&)>& same,
                            const Evaluate& evaluate);

}  // namespace berth::replay
