// SPDX-License-Identifier: Apache-2.0
//
// FirstLine: an answer in one line of a terminal. It is made of parts, and those that matter least
// are left out where the line would be too long; what is left out stands below the line.
//
//   const std::vector<LinePart> parts = {{"fits none of 3 nodes"},
//                                        {"fits when ml/b ends"},
//                                        {"2 nodes are not in pool=z", 1}};
//   LineOf(parts, 160);  // "fits none of 3 nodes; fits when ml/b ends; 2 nodes are not in pool=z"
//
// Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth {

struct LinePart {
  std::string text;  // "": no part
  int rank = 0;      // 0: always there; else the lower ranks are there first
  // Between the part and the one before it; a literal. Unless it begins with ";", the part is left
  // out where the one before it is.
  std::string_view joint = "; ";
  std::string shorter = {};  // where there is no room for the text; "": nothing is
};

inline constexpr std::size_t kLongestLine = 160;  // bytes
inline constexpr std::size_t kLongestName = 50;   // of the name that stands before the answer
inline constexpr std::size_t kShortName = 24;     // of a name in a line that is too long

// The line in at most `most` bytes. Parts of rank 0 that are too long together have their
// shorter text, the last ones first; if these are too long too, the line is cut.
std::string LineOf(std::span<const LinePart> parts, std::size_t most);

// The same where a line may be longer, as in a plan: in as many bytes as all parts of rank 0 take
// in full, kLongestLine at least and kLongestWhole at most.
inline constexpr std::size_t kLongestWhole = 1000;
std::string WholeLineOf(std::span<const LinePart> parts);

// The name, or its beginning and its end: "team-a/a-very...worker-0". Requires: most >= 8. No
// UTF-8: names of Kubernetes have none.
std::string ShortName(std::string_view name, std::size_t most);

// So much room an answer has behind that name and ": ".
std::size_t RoomBehind(std::string_view name);

}  // namespace berth
