// windows.hpp: the windows of a store, one per scope and filter that workers ask for. What one knows is window.hpp's
// affair. All methods want the store's mutex held.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "window.hpp"

namespace telha {

// All windows of a store, bounded in number and in entries: the one that was asked for the longest time ago goes first.
class Windows {
 public:
  using Group = std::vector<Window*>;
  static constexpr size_t kMaxWindows = 8 * 1024;
  static constexpr size_t kMaxEntries = 1024 * 1024;
  static constexpr size_t kMaxRowBytes = 64 << 20;

  // Before the first call of find(): how many ready jobs a window may hold.
  void set_ready_limit(size_t limit) noexcept { ready_limit_ = limit; }

  // The window of a scope (null: all scopes) and filter, made when it is new. It stays where it is until the next
  // call of find().
  Window* find(const char* scope, const Kinds& kinds) noexcept {
    if (!recent_.empty() &&
        recent_.front().window.is_for(scope, kinds)) {  // a worker asks for the same again and again
      count(&recent_.front().window);
      make_room();
      return &recent_.front().window;
    }
    // The first byte keeps a scope's bytes from being read as a filter.
    std::string name = scope ? "s" + std::string(scope, Key::kScopeBytes) : std::string("a");
    name += kinds.name();
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      count(&recent_.front().window);
      make_room();
      return &recent_.front().window;
    }
    recent_.emplace_front(std::move(name), scope, kinds.name(), ready_limit_);
    Slot& slot = recent_.front();
    by_name_.emplace(slot.name, recent_.begin());
    (scope ? by_scope_[std::string(scope, Key::kScopeBytes)] : any_).push_back(&slot.window);
    last_scope_.clear();
    make_room();
    return &slot.window;
  }

  // The windows that a job of a scope can stand in: those of the scope, and those of all scopes (null).
  const Group* of(const char* scope) const noexcept {
    if (scope == nullptr) return &any_;
    const std::string_view wanted(scope, Key::kScopeBytes);
    if (wanted != last_scope_) {  // jobs come in runs of a scope
      const auto found = by_scope_.find(wanted);
      last_scope_ = wanted;
      last_group_ = found == by_scope_.end() ? &none_ : &found->second;
    }
    return last_group_;
  }

  // Brings the number of entries up to date with a window that was told of a job, or filled.
  void count(Window* window) noexcept {
    entries_ += window->size() - window->counted_;
    row_bytes_ += window->row_bytes_ - window->counted_bytes_;
    window->counted_ = window->size();
    window->counted_bytes_ = window->row_bytes_;
  }

  // After windows were told of jobs: forgets those that nobody asks for when there is too much in all of them.
  void trim() noexcept { make_room(); }

  void withdraw(const char* key) noexcept {
    for (Window* window : *of(key)) window->withdraw(key);
    for (Window* window : any_) window->withdraw(key);
  }

 private:
  struct Slot {
    Slot(std::string name_, const char* scope, std::string filter, size_t ready_limit)
        : name(std::move(name_)), window(scope, std::move(filter), ready_limit) {}
    std::string name;
    Window window;
  };

  struct ScopeHash {  // so that a look-up need not make a string
    using is_transparent = void;
    size_t operator()(std::string_view scope) const noexcept { return std::hash<std::string_view>{}(scope); }
  };

  // The window in front is in use.
  void make_room() noexcept {
    while (recent_.size() > 1 && is_over()) forget_oldest();
  }

  bool is_over() const noexcept {
    return recent_.size() > kMaxWindows || entries_ > kMaxEntries || row_bytes_ > kMaxRowBytes;
  }

  void forget_oldest() noexcept {
    Slot& slot = recent_.back();
    const char* scope = slot.window.scope();
    const auto found = scope ? by_scope_.find(std::string_view(scope, Key::kScopeBytes)) : by_scope_.end();
    Group& windows = scope ? found->second : any_;
    entries_ -= slot.window.counted_;
    row_bytes_ -= slot.window.counted_bytes_;
    std::erase(windows, &slot.window);
    if (scope != nullptr && windows.empty()) by_scope_.erase(found);
    last_scope_.clear();
    by_name_.erase(slot.name);
    recent_.pop_back();
  }

  size_t ready_limit_ = 4096;
  size_t entries_ = 0;
  size_t row_bytes_ = 0;
  std::list<Slot> recent_;  // the one asked for last in front
  std::unordered_map<std::string, std::list<Slot>::iterator> by_name_;
  std::unordered_map<std::string, Group, ScopeHash, std::equal_to<>> by_scope_;
  Group any_;
  Group none_;
  mutable std::string last_scope_;  // the scope that of() was asked for last, empty for none
  mutable const Group* last_group_ = nullptr;
};

}  // namespace telha
