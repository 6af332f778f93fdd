// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/leaving_sets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace berth {
namespace {

// A resident that holds something of what is missing.
struct Holder {
  Amounts held{};
  std::int64_t price = 0;
};

// Branch and bound over few holders.
class ExactLeast {
 public:
  explicit ExactLeast(std::vector<Holder> holders) : holders_(std::move(holders)) {
    // What those from i on hold together.
    rest_.resize(holders_.size() + 1);
    for (std::size_t i = holders_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1];
      for (std::size_t k = 0; k < rest_[i].size(); ++k) rest_[i][k] += holders_[i].held[k];
    }
  }
  std::optional<std::int64_t> Find(const Amounts& missing) {
    Look(0, missing, 0);
    if (best_ == kNone) return std::nullopt;
    return best_;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  void Look(std::size_t i, const Amounts& missing, std::int64_t price) {
    if (price >= best_ || !CoversAll(rest_[i], missing)) return;
    if (CoversAll(Amounts{}, missing)) {
      best_ = price;
      return;
    }
    Amounts less = missing;
    for (std::size_t k = 0; k < less.size(); ++k) less[k] -= holders_[i].held[k];
    Look(i + 1, less, price + holders_[i].price);
    Look(i + 1, missing, price);
  }

  const std::vector<Holder> holders_;
  std::vector<Amounts> rest_;
  std::int64_t best_ = kNone;
};

// Of each kind of amount the cheapest per piece, the last one in part.
std::optional<std::int64_t> FractionalLeast(std::vector<Holder>& holders, const Amounts& missing) {
  double most = 0;
  for (std::size_t k = 0; k < missing.size(); ++k) {
    if (missing[k] == 0) continue;
    std::erase_if(holders, [](const Holder& one) { return one.held == Amounts{}; });
    const auto per_piece = [k](const Holder& one) {
      return one.held[k] == 0 ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(one.price) / static_cast<double>(one.held[k]);
    };
    std::ranges::sort(holders, {}, per_piece);
    double left = static_cast<double>(missing[k]), price = 0;
    for (const Holder& one : holders) {
      if (left <= 0 || one.held[k] == 0) break;
      const double taken = std::min(left, static_cast<double>(one.held[k]));
      price += taken * per_piece(one);
      left -= taken;
    }
    if (left > 0) return std::nullopt;
    most = std::max(most, price);
  }
  return static_cast<std::int64_t>(std::floor(most * (1 - 1e-9)));
}

}  // namespace

std::optional<std::int64_t> LeastCost(std::span<const Resident> residents, RoomNodes::Set gone,
                                      const Amounts& missing, Prices prices) {
  if (missing == Amounts{}) return 0;
  std::vector<Holder> holders;
  holders.reserve(residents.size());
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if ((gone >> i & 1) != 0) continue;
    bool holds = false;
    for (std::size_t k = 0; k < missing.size(); ++k) {
      holds |= missing[k] > 0 && residents[i].held[k] > 0;
    }
    if (holds) holders.push_back({residents[i].held, PriceOf(residents[i], prices)});
  }
  if (holders.size() > kMostExact) return FractionalLeast(holders, missing);
  return ExactLeast(std::move(holders)).Find(missing);
}

LeavingSets::LeavingSets(const RoomNodes& nodes, NodeIndex node, const Arrival& arrival,
                         Prices prices)
    : nodes_(nodes),
      node_(node),
      arrival_(arrival),
      prices_(prices),
      missing_(nodes.Missing(*arrival.pod, node)) {
  const std::vector<Resident>& residents = nodes.residents(node);
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if ((nodes.gone(node) >> i & 1) == 0) order_.push_back(i);
  }
  queue_.push({0, 0, 0});
}

// The sets one larger by the next one, or with that one instead of the last: each set once.
void LeavingSets::PushAfter(const Entry& entry) {
  const std::vector<Resident>& residents = nodes_.residents(node_);
  const std::size_t next = entry.set == 0 ? 0 : entry.last + 1;
  if (next >= order_.size()) return;
  const auto bit = [this](std::size_t i) { return RoomNodes::Set{1} << order_[i]; };
  const auto price = [&](std::size_t i) { return PriceOf(residents[order_[i]], prices_); };
  queue_.push({entry.price + price(next), next, entry.set | bit(next)});
  if (entry.set == 0) return;
  queue_.push({entry.price - price(entry.last) + price(next), next,
               (entry.set & ~bit(entry.last)) | bit(next)});
}

bool LeavingSets::HoldEnough(RoomNodes::Set set) const {
  Amounts held{};
  const std::vector<Resident>& residents = nodes_.residents(node_);
  for (; set != 0; set &= set - 1) {
    const Amounts& of_one = residents[static_cast<std::size_t>(std::countr_zero(set))].held;
    for (std::size_t k = 0; k < held.size(); ++k) held[k] += of_one[k];
  }
  return CoversAll(held, missing_);
}

std::optional<LeavingSet> LeavingSets::Next(std::int64_t below) {
  while (!queue_.empty() && looked_ < kMostSets) {
    const Entry entry = queue_.top();
    at_least_ = entry.price;
    if (entry.price >= below) return std::nullopt;
    queue_.pop();
    ++looked_;
    const bool has_found = std::ranges::any_of(
        found_, [&entry](RoomNodes::Set set) { return (set & entry.set) == set; });
    PushAfter(entry);
    if (has_found || !HoldEnough(entry.set)) continue;
    auto state = nodes_.With(node_, entry.set, arrival_);
    if (state == nullptr) continue;
    found_.push_back(entry.set);
    return LeavingSet{entry.set, entry.price, std::move(state)};
  }
  if (queue_.empty()) at_least_ = std::numeric_limits<std::int64_t>::max();
  return std::nullopt;
}

}  // namespace berth
