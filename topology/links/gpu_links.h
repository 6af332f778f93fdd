// SPDX-License-Identifier: Apache-2.0
//
// GpuLinks: the known links between one node's GPUs, and the set of GPUs that a pod should
// therefore get.
//
// A set is *linked* if each of its GPUs reaches every other one over a fabric inside the
// set. Masks use the node's own GPU numbers. If the links are unknown (the default), all GPUs count
// as alike. Cheap to copy; any number of threads may ask.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/links/link_matrix.h"
#include "topology/links/set_table.h"
#include "topology/links/wiring.h"

namespace berth {

// WiringTables: one SetTable per distinct wiring, however its GPUs are numbered.
//
// The same machine comes with different GPU numberings (the V100 cube mesh has four), so a wiring
// is recognised by isomorphism and uses, through the permutation, the table of the first wiring of
// its kind. A table is built when a question first needs it.

// The sets of one wiring, in its own GPU numbers. Cheap to copy; any number of threads may ask.
class WiringSets {
 public:
  // As SetTable::Choose and quality(), or as SetOutlook::Choose if tenants are given and the
  // machine is not too large for it. A uniform wiring needs no table and takes the lowest indices.
  // Above kMaxTableGpus GPUs the set is the one of SearchSet, and its quality is the total
  // bandwidth relative to the best set that the same search finds in the whole machine.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, GpuMask required = 0,
                               std::span<const GpuMask> tenants = {}) const;
  [[nodiscard]] int quality(GpuMask set) const;  // thousandths
  [[nodiscard]] int span(GpuMask set) const { return wiring_->Span(set); }

  // nullptr where the wiring has too many GPUs. Its GPUs are numbered as ToTable says.
  [[nodiscard]] const SetTable* table() const;
  [[nodiscard]] GpuMask ToTable(GpuMask set) const { return Mapped(set, to_table_); }
  [[nodiscard]] GpuMask FromTable(GpuMask set) const { return Mapped(set, from_table_); }

 private:
  friend class WiringTables;
  struct Kind;  // of one wiring under any numbering

  [[nodiscard]] static GpuMask Mapped(GpuMask set, const std::vector<int>& to);

  std::shared_ptr<const Wiring> wiring_;
  std::shared_ptr<Kind> kind_;
  std::vector<int> to_table_, from_table_;  // empty: the same numbers
  bool uniform_ = false;
};

// The i-th of the result is the GPU of `to` that corresponds to GPU i of `from` under another
// numbering, with the same bandwidths and NUMA groups throughout. nullopt if there is no such
// numbering, or none was found within kMaxIsomorphismSteps comparisons of links (then both wirings
// merely get a table of their own).
std::optional<std::vector<int>> NumberingOf(const Wiring& from, const Wiring& to);
inline constexpr int kMaxIsomorphismSteps = 2'000'000;

// One thread at a time.
class WiringTables {
 public:
  explicit WiringTables(const SizeMix& mix = {}) : mix_(mix) {}

  WiringSets SetsOf(const Wiring& wiring);
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

 private:
  SizeMix mix_;
  std::vector<std::shared_ptr<WiringSets::Kind>> kinds_;
};

// LinkAsk: a pod's requirements for the links between its GPUs. A value; it matters for pods with
// two whole GPUs or more.

enum class LinkWish : std::uint8_t {
  kPreferred,  // the fastest set there is
  kRequired,   // its GPUs are connected by a fabric (GpuLinks::Satisfies)
  kNone,       // it does not matter: the fast sets are left to others
};

enum class NumaWish : std::uint8_t {
  kAmongEquals,  // the fewest NUMA groups among sets of equal links
  kPreferred,    // the fewest NUMA groups, before the links
  kRequired,     // one NUMA group
};

// How the pod's processes communicate, which decides what makes a set of GPUs fast for it.
enum class LinkPattern : std::uint8_t {
  kAny,       // what SetTable calls quality
  kRing,      // the worst link of the best ring
  kAllToAll,  // the worst link of any two
  kPairs,     // the worst link of the best division into pairs
  kGrid,      // the worst link of the best mesh of two rows
};
inline constexpr int kLinkPatterns = 5;

struct LinkAsk {
  LinkWish link = LinkWish::kPreferred;
  NumaWish numa = NumaWish::kAmongEquals;
  LinkPattern pattern = LinkPattern::kAny;
  int min_megabytes_per_s = 0;  // of the set's ring, in one direction; 0 = none

  // Whether the ask forbids any set.
  [[nodiscard]] bool limits() const {
    return link == LinkWish::kRequired || numa == NumaWish::kRequired || min_megabytes_per_s > 0;
  }
  friend bool operator==(const LinkAsk&, const LinkAsk&) = default;
  friend auto operator<=>(const LinkAsk&, const LinkAsk&) = default;
};

// What a machine's links were read from, in rising order of precedence.
enum class LinkSource : std::uint8_t {
  kUnknown,    // the links are unknown
  kCatalogue,  // what is known of the product (wiring.h)
  kObject,     // an object beside the Node
  kNode,       // the Node itself, or a file
};
struct LinkOrigin {
  LinkSource source = LinkSource::kUnknown;
  std::string name;  // for people: the annotation's key, ...
  friend bool operator==(const LinkOrigin&, const LinkOrigin&) = default;
};

class GpuLinks {
 public:
  GpuLinks() = default;
  // `tables`: shared by all machines of one wiring.
  GpuLinks(LinkMatrix matrix, const LinkSpeeds& speeds, LinkOrigin origin, WiringTables& tables);

  [[nodiscard]] bool known() const { return parts_ != nullptr; }
  [[nodiscard]] LinkSource source() const;
  // Copies have the same as long as one of them lives; unknown links have 0.
  [[nodiscard]] std::uintptr_t identity() const {
    return reinterpret_cast<std::uintptr_t>(parts_.get());
  }

  // All that follows requires known().

  [[nodiscard]] const LinkMatrix& matrix() const;
  [[nodiscard]] const LinkOrigin& origin() const;
  [[nodiscard]] bool knows_numa() const;
  // The GPUs of each NUMA node that has some, by the number of the NUMA node (NumaNodesOf).
  [[nodiscard]] std::span<const GpuMask> numa_nodes() const;
  [[nodiscard]] int Between(int a, int b) const;  // MB/s
  [[nodiscard]] const Surroundings& around(int gpu) const;
  [[nodiscard]] int span(GpuMask set) const;            // NUMA groups
  [[nodiscard]] int LeastSpan(int size) const;          // of any set of so many GPUs of the machine
  [[nodiscard]] int MostOfOneGroup(GpuMask set) const;  // how many of the set one group has
  // Relative to the best set of the size in the whole machine, in thousandths.
  [[nodiscard]] int quality(GpuMask set) const;
  // The same of the best set of that size in `free`; 0 where there is none.
  [[nodiscard]] int BestQuality(GpuMask free, int size) const;
  // Bandwidth of the worst link of the best ring through the set, in MB/s. Above kMaxTableGpus
  // GPUs: of its worst pair; the ring may be better.
  [[nodiscard]] int Ring(GpuMask set) const;
  // The largest linked set of these GPUs; of equal ones that with the lowest GPU.
  [[nodiscard]] GpuMask LargestLinked(GpuMask free) const;

  // Whether the ask allows the set. It allows any single GPU.
  [[nodiscard]] bool Satisfies(GpuMask set, const LinkAsk& ask) const;

  // `size` GPUs of `free` for that ask; 0 if no set satisfies it. If the ask neither forbids a set
  // nor orders them differently, the result is that of WiringSets::Choose (tenants: as there).
  // Otherwise, among the sets that satisfy the ask, in order of precedence: the fewest NUMA groups
  // (numa: preferred), the pattern, the quality (both not with link: none), the fewest NUMA groups,
  // the value of what stays free (set_table.h), the lowest mask.
  //
  // Exact up to kMaxTableGpus GPUs: all sets are examined, within 2 us for 8 and a millisecond for
  // 16 GPUs. Above that, sets are grown from every GPU by the GPU that adds most bandwidth: this
  // finds a set if link and numa allow any, may miss one for a minimum bandwidth, and ignores
  // patterns.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, const LinkAsk& ask = {},
                               std::span<const GpuMask> tenants = {}) const;

  // Equal in what is known and where it was read.
  friend bool operator==(const GpuLinks& a, const GpuLinks& b);

 private:
  struct Parts;

  [[nodiscard]] GpuMask Search(GpuMask free, int size, const LinkAsk& ask) const;
  [[nodiscard]] GpuMask Grow(GpuMask free, int size, const LinkAsk& ask) const;
  [[nodiscard]] GpuMask GrowFrom(int seed, GpuMask free, int size, const LinkAsk& ask) const;
  [[nodiscard]] GpuMask LinkedWith(GpuMask seed, GpuMask within) const;
  [[nodiscard]] int PatternScore(GpuMask set, LinkPattern pattern) const;

  std::shared_ptr<const Parts> parts_;
};

// A good set of GPUs where the machine has too many for a table of all sets (set_table.h).
//
// Maximises the total bandwidth of the set, then the smallest NUMA span: from every GPU a set is
// grown by the GPU that adds most, and the best of them improved by swaps. Not exact. Bounded: at
// most F*F*k lookups to grow and 2k*F*k to swap, for k of F free GPUs (1.5 million for 32 of 64).

// `size` GPUs of `free` that include `required`; 0 where there are none. One GPU: the one with the
// least bandwidth to the rest. Requires: both are sets of the wiring's GPUs.
GpuMask SearchSet(const Wiring& wiring, GpuMask free, int size, GpuMask required = 0);

// Total bandwidth between the GPUs of a set, in MB/s.
std::int64_t AggregateOf(const Wiring& wiring, GpuMask set);

// What every set of a machine's GPUs is worth to pods that talk in a pattern.

inline constexpr int kMaxPatternGpus = 16;  // of the machine
inline constexpr int kMaxGridGpus = 8;

// By set, in MB/s: the worst link that the pattern has to use where the GPUs take its places in the
// best way. Exact.
//
//   kAllToAll  every two of them
//   kPairs     a perfect matching; of an odd number one GPU is left over
//   kGrid      a mesh of 2 x k/2; 0 for an odd number
//
// Empty, that is nothing to tell sets apart by: for kAny and kRing (SetTable has the ring), above
// kMaxPatternGpus GPUs, and for kGrid above kMaxGridGpus.
std::vector<int> PatternScores(const Wiring& wiring, LinkPattern pattern);

}  // namespace berth
