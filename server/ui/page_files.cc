// SPDX-License-Identifier: Apache-2.0
#include "server/ui/page_files.h"

#include "base/check.h"

namespace berth {
namespace {

std::string Script() {
  std::string script;
  for (const std::string_view part : kPageScripts) script += part;
  return script;
}

void Replace(std::string& text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  BERTH_CHECK(at != std::string::npos);
  text.replace(at, what.size(), with);
}

}  // namespace

std::vector<PageFile> PageFiles() {
  return {{"/", "text/html; charset=utf-8", std::string(kPageHtml)},
          {"/page.css", "text/css; charset=utf-8", std::string(kPageCss)},
          {"/page.js", "text/javascript; charset=utf-8", Script()}};
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
  std::string page(kPageHtml);
  Replace(page, "<link rel=\"stylesheet\" href=\"page.css\">",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
          "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n<style>\n" +
              std::string(kPageCss) + "</style>");
  Replace(page, "<script src=\"page.js\"></script>",
          "<script type=\"application/json\" id=\"data\">" + data + "</script>\n<script>\n" +
              Script() + "</script>");
  return page;
}

}  // namespace berth
