// SPDX-License-Identifier: Apache-2.0
//
// The live page: a document, a style and a script. The files of server/ui/page are compiled into
// the program. The script asks for /debug/live every few seconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct PageFile {
  std::string path;  // "/page.js"
  std::string content_type;
  std::string text;
};

// What a browser may load and run for the document: the files above, and answers of this server.
// As the value of Content-Security-Policy.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The files of server/ui/page, compiled into the program.

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageScripts[8];  // one script, in this order

// All files. The first is the document, at "/".
inline std::vector<PageFile> PageFiles() {
  std::string script;
  for (const std::string_view part : kPageScripts) script += part;
  return {{"/", "text/html; charset=utf-8", std::string(kPageHtml)},
          {"/page.css", "text/css; charset=utf-8", std::string(kPageCss)},
          {"/page.js", "text/javascript; charset=utf-8", script}};
}

}  // namespace berth
