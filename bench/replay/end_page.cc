// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/end_page.h"

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "bench/replay/replay.h"
#include "server/pages/live_view.h"
#include "server/ui/page_files.h"

namespace berth::replay {
namespace {

wire::WaitingRow RowOf(const TraceTask& task, std::size_t n, std::string why) {
  wire::WaitingRow row;
  row.pod.pod = std::make_shared<const PodRequest>(PodOf(task, n));
  row.why.text = std::move(why);
  return row;
}

std::string HoursText(Millis time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f h",
                std::chrono::duration<double, std::ratio<3600>>(time).count());
  return text;
}

void Replace(std::string& text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  BERTH_CHECK(at != std::string::npos);
  text.replace(at, what.size(), with);
}

}  // namespace

std::vector<wire::WaitingRow> PodsLeft(const std::vector<TraceTask>& tasks,
                                       const Arrivals& arrivals, const PodStarts& starts) {
  std::vector<wire::WaitingRow> left;
  for (std::size_t n = 0; n < starts.size(); ++n) {
    if (!starts[n].node.empty()) continue;
    left.push_back(RowOf(tasks[arrivals.tasks[n]], n, "no node took it when it came"));
  }
  return left;
}

std::vector<wire::WaitingRow> PodsLeft(const std::vector<TraceTask>& tasks, const Stream& stream,
                                       const PodStarts& starts) {
  std::vector<wire::WaitingRow> left;
  for (std::size_t n = 0; n < starts.size(); ++n) {
    if (!starts[n].node.empty()) continue;
    const Arrival& arrival = stream.arrivals[n];
    left.push_back(RowOf(tasks[arrival.task], n,
                         "has waited " + HoursText(stream.horizon - arrival.at) + " at the end"));
  }
  return left;
}

std::string PageWith(std::string_view live) {
  // In a script nothing but "<" could end the data.
  std::string data;
  for (const char c : live) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string script;
  for (const std::string_view part : kPageScripts) script += part;
  std::string page(kPageHtml);
  Replace(page, "<link rel=\"stylesheet\" href=\"page.css\">",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
          "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n<style>\n" +
              std::string(kPageCss) + "</style>");
  Replace(page, "<script src=\"page.js\"></script>",
          "<script type=\"application/json\" id=\"data\">" + data + "</script>\n<script>\n" +
              script + "</script>");
  return page;
}

std::string EndPage(const std::string& title, const std::string& version, const Snapshot& end,
                    std::vector<wire::WaitingRow> left) {
  wire::LiveNews news;
  news.berth = version;
  news.title = title;
  news.waiting_in_all = left.size();
  if (left.size() > wire::kMostWaitingRows) left.resize(wire::kMostWaitingRows);
  news.waiting = std::move(left);
  const wire::NodeSet set = wire::EncodeNodeSet(end, {}, nullptr);
  return PageWith(wire::EncodeLive(wire::EncodeNews(news), end, set, true));
}

}  // namespace berth::replay
