// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/tune/search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>

#include "base/random.h"

namespace berth::replay {
namespace {

constexpr double kFirstStep = 0.25;
constexpr double kLastStep = 1.0 / 512;

std::vector<std::size_t> Shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  random.Shuffle(numbers);
  return numbers;
}

// The values of the points known so far.
class Ledger {
 public:
  Ledger(const SearchOptions& options, const Evaluate& evaluate, Random& random)
      : budget_(options.budget), cases_(Shuffled(options.cases, random)), evaluate_(evaluate) {}

  [[nodiscard]] std::size_t cases() const { return cases_.size(); }
  [[nodiscard]] std::size_t spent() const { return spent_; }
  [[nodiscard]] std::size_t left() const { return budget_ - spent_; }

  // How many evaluations it takes to know the first `count` cases of the points.
  [[nodiscard]] std::size_t Price(const std::vector<Point>& points, std::size_t count) const {
    std::size_t price = 0;
    for (const Point& point : points) price += count - std::min(count, Known(point));
    return price;
  }

  // Requires: Price(points, count) <= left(), and no point twice.
  Status Learn(const std::vector<Point>& points, std::size_t count) {
    Evaluations wanted;
    for (const Point& point : points) {
      for (std::size_t i = Known(point); i < count; ++i) wanted.emplace_back(point, cases_[i]);
    }
    BERTH_TRY(const std::vector<double> values, evaluate_(wanted));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      values_[wanted[i].first].push_back(values[i]);
    }
    spent_ += wanted.size();
    return {};
  }

  // The mean over the first `count` cases. Requires: they are known.
  [[nodiscard]] double Mean(const Point& point, std::size_t count) const {
    const std::vector<double>& values = values_.at(point);
    return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count),
                           0.0) /
           static_cast<double>(count);
  }

 private:
  [[nodiscard]] std::size_t Known(const Point& point) const {
    const auto found = values_.find(point);
    return found == values_.end() ? 0 : found->second.size();
  }

  const std::size_t budget_;
  const std::vector<std::size_t> cases_;
  const Evaluate& evaluate_;
  std::map<Point, std::vector<double>> values_;  // by the order of cases_
  std::size_t spent_ = 0;
};

void DropRepeats(std::vector<Point>& points) {
  std::vector<Point> kept;
  for (Point& point : points) {
    if (std::ranges::find(kept, point) == kept.end()) kept.push_back(std::move(point));
  }
  points = std::move(kept);
}

// The points that go on, best first, the earlier one among equals.
void KeepBetterHalf(std::vector<Point>& points, const Ledger& ledger, std::size_t cases) {
  std::ranges::stable_sort(points, std::greater<>(),
                           [&](const Point& point) { return ledger.Mean(point, cases); });
  points.resize((points.size() + 1) / 2);
}

// Drops points from the end until the budget suffices for so many cases of each and, after that,
// for all cases of one.
void FitBudget(std::vector<Point>& points, std::size_t cases, const Ledger& ledger) {
  while (points.size() > 1 && ledger.Price(points, cases) + ledger.cases() > ledger.left()) {
    points.pop_back();
  }
}

// The best point after halving; it is known on all cases. Requires: the first point is.
Result<Point> Halve(std::vector<Point> points, Ledger& ledger) {
  std::size_t cases = std::max<std::size_t>(1, ledger.cases() / std::bit_floor(points.size()));
  for (FitBudget(points, cases, ledger); points.size() > 1; FitBudget(points, cases, ledger)) {
    BERTH_TRY_STATUS(ledger.Learn(points, cases));
    KeepBetterHalf(points, ledger, cases);
    if (cases == ledger.cases()) break;
    cases = std::min(ledger.cases(), 2 * cases);
  }
  points.resize(1);
  BERTH_TRY_STATUS(ledger.Learn(points, ledger.cases()));
  return points.front();
}

// A better neighbour of the point along that coordinate, or the point itself.
Result<Point> Step(const Point& from, std::size_t coordinate, double step,
                   const std::function<Point(const Point&)>& same, Ledger& ledger) {
  std::vector<Point> around;
  for (const double by : {step, -step}) {
    Point point = from;
    point[coordinate] = std::clamp(point[coordinate] + by, 0.0, 1.0);
    around.push_back(same(point));
  }
  std::erase(around, from);
  DropRepeats(around);
  while (!around.empty() && ledger.Price(around, ledger.cases()) > ledger.left()) around.pop_back();
  BERTH_TRY_STATUS(ledger.Learn(around, ledger.cases()));
  Point best = from;
  for (const Point& point : around) {
    if (ledger.Mean(point, ledger.cases()) > ledger.Mean(best, ledger.cases())) best = point;
  }
  return best;
}

// How many points half of the budget affords: n points halved over log2(n) rounds, with twice the
// cases in each, cost about max(n, cases) and half as much again per round.
std::size_t PointsFor(const SearchOptions& options) {
  const auto cost = [&options](std::size_t n) {
    const auto rounds = static_cast<std::size_t>(std::bit_width(n)) - 1;
    return std::max(n, options.cases) * (2 + rounds) / 2;
  };
  std::size_t count = 2;
  while (count < 256 && cost(2 * count) <= options.budget / 2) count *= 2;
  return count;
}

}  // namespace

std::vector<Point> LatinHypercube(std::size_t dimensions, std::size_t points, std::uint64_t seed) {
  Random random(seed);
  std::vector<Point> cube(points, Point(dimensions));
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::vector<std::size_t> slices = Shuffled(points, random);
    for (std::size_t i = 0; i < points; ++i) {
      cube[i][d] = (static_cast<double>(slices[i]) + random.Unit()) / static_cast<double>(points);
    }
  }
  return cube;
}

Result<SearchResult> Search(const Point& start, const SearchOptions& options,
                            const std::function<Point(const Point&)>& same,
                            const Evaluate& evaluate) {
  if (options.budget < 2 * options.cases) {
    return Invalid("budget: want at least twice the cases (" + std::to_string(options.cases) +
                   " pairs of trace and seed), got " + std::to_string(options.budget));
  }
  Random random(options.seed);
  Ledger ledger(options, evaluate, random);
  const Point first = same(start);
  BERTH_TRY_STATUS(ledger.Learn({first}, ledger.cases()));

  std::vector<Point> points = {first};
  const std::size_t drawn = PointsFor(options) - 1;
  for (const Point& point : LatinHypercube(start.size(), drawn, random.Next())) {
    points.push_back(same(point));
  }
  DropRepeats(points);
  BERTH_TRY(Point best, Halve(std::move(points), ledger));
  if (ledger.Mean(first, ledger.cases()) > ledger.Mean(best, ledger.cases())) best = first;

  for (double step = kFirstStep; step >= kLastStep && ledger.left() > 0;) {
    const Point before = best;
    for (std::size_t d = 0; d < best.size(); ++d) {
      BERTH_TRY(best, Step(best, d, step, same, ledger));
    }
    if (best == before) step /= 2;
  }
  return SearchResult{best, ledger.Mean(best, ledger.cases()), ledger.Mean(first, ledger.cases()),
                      ledger.spent()};
}

}  // namespace berth::replay
