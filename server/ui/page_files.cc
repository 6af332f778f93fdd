// SPDX-License-Identifier: Apache-2.0
#include "server/ui/page_files.h"

namespace berth {
namespace {

std::string Script() {
  std::string script;
  for (const std::string_view part : kPageScripts) script += part;
  return script;
}

}  // namespace

std::vector<PageFile> PageFiles() {
  return {{"/", "text/html; charset=utf-8", std::string(kPageHtml)},
          {"/page.css", "text/css; charset=utf-8", std::string(kPageCss)},
          {"/page.js", "text/javascript; charset=utf-8", Script()}};
}

}  // namespace berth
