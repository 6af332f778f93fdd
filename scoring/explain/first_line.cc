// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/first_line.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace berth {
namespace {

std::string Joined(std::span<const LinePart> parts, std::span<const std::string_view> texts) {
  std::string line;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (texts[i].empty()) continue;
    if (!line.empty()) line += parts[i].joint;
    line += texts[i];
  }
  return line;
}

// Whether the part is one of its own, or the one before it is there.
bool HasItsGround(std::span<const LinePart> parts, std::span<const std::string_view> texts,
                  std::size_t i) {
  if (parts[i].joint.starts_with(';')) return true;
  while (i-- > 0) {
    if (!parts[i].text.empty()) return !texts[i].empty();
  }
  return true;
}

// In its text, or the shorter one, if there is room.
void Add(std::span<const LinePart> parts, std::size_t i, std::size_t most,
         std::vector<std::string_view>& texts) {
  for (const std::string_view text :
       {std::string_view(parts[i].text), std::string_view(parts[i].shorter)}) {
    texts[i] = text;
    if (Joined(parts, texts).size() <= most) return;
  }
  texts[i] = {};
}

}  // namespace

std::string LineOf(std::span<const LinePart> parts, std::size_t most) {
  std::vector<std::string_view> texts(parts.size());
  int last_rank = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank == 0) texts[i] = parts[i].text;
    last_rank = std::max(last_rank, parts[i].rank);
  }
  for (std::size_t i = parts.size(); i-- > 0 && Joined(parts, texts).size() > most;) {
    if (parts[i].rank == 0 && !parts[i].shorter.empty()) texts[i] = parts[i].shorter;
  }
  for (int rank = 1; rank <= last_rank; ++rank) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].rank == rank && HasItsGround(parts, texts, i)) Add(parts, i, most, texts);
    }
  }
  return OnOneLine(Shortened(Joined(parts, texts), most));
}

std::string WholeLineOf(std::span<const LinePart> parts) {
  std::size_t bytes = 0;
  for (const LinePart& part : parts) {
    if (part.rank == 0) bytes += part.joint.size() + part.text.size();
  }
  return LineOf(parts, std::clamp(bytes, kLongestLine, kLongestWhole));
}

std::string ShortName(std::string_view name, std::size_t most) {
  constexpr std::string_view kGap = "...";
  if (name.size() <= most) return OnOneLine(std::string(name));
  const std::size_t end = (most - kGap.size()) / 2;
  std::string text(name.substr(0, most - kGap.size() - end));
  text += kGap;
  return OnOneLine(text.append(name.substr(name.size() - end)));
}

std::size_t RoomBehind(std::string_view name) {
  constexpr std::size_t kColon = 2;
  return kLongestLine - kColon - std::min(name.size(), kLongestName);
}

}  // namespace berth
