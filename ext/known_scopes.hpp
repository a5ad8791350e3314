// known_scopes.hpp: the scopes that have jobs, once they have been read from disk. What is done in all scopes starts
// here: to find them on disk costs a seek each, through whatever was deleted at the head of each.
//
// Grows by 100 bytes or so with every scope that is used. Wants the store's mutex held.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "due.hpp"
#include "rows.hpp"

namespace telha {

class KnownScopes {
 public:
  // Whether the scopes on disk were all added. Before that, nobody needs to tell of new ones.
  bool is_complete() const noexcept { return is_complete_; }
  void set_complete() noexcept { is_complete_ = true; }

  void add(const char* scope) noexcept {
    const std::string_view bytes(scope, Key::kScopeBytes);
    if (bytes == last_) return;  // jobs come in runs
    last_ = *scopes_.emplace(bytes).first;
  }

  void copy_to(Names* out) const noexcept {
    for (const auto& scope : scopes_) *out->add() = scope;
  }

 private:
  std::set<std::string> scopes_;
  std::string last_;
  bool is_complete_ = false;
};

}  // namespace telha
