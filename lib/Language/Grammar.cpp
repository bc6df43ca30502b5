#include "Grammar.h"

#include <algorithm>
#include <cstdio>

namespace ajour::language {

//===--- tokens as a tree ---------------------------------------------------------===//

bool TokenTree::build(const Tokenizer &tokenizer) {
  int32_t count = tokenizer.size();
  Buffer<int32_t> order;
  if (!same.fill(size_t(count), -1))
    return false;
  for (int32_t id = 0; id < count; ++id) {
    if (tokenizer.endsGeneration(id))
      ends.push(id);
    else if (!tokenizer.isControl(id) && tokenizer.bytes(id).size != 0)
      order.push(id);
  }
  // The bytes as generation writes them: blanks are blanks, whatever the vocabulary has for them.
  Buffer<uint32_t> starts;
  Text texts;
  starts.fill(size_t(count) + 1, 0);
  for (int32_t id = 0; id < count; ++id) {
    tokenizer.decode(id, false, false, texts);
    if (!starts.failed())
      starts[size_t(id) + 1] = uint32_t(texts.size());
  }
  if (order.failed() || ends.failed() || starts.failed() || texts.failed())
    return false;
  auto bytesOf = [&](int32_t id) { return Bytes(texts.data() + starts[size_t(id)], starts[size_t(id) + 1] - starts[size_t(id)]); };
  std::sort(order.data(), order.data() + order.size(), [&](int32_t a, int32_t b) {
    Bytes x = bytesOf(a), y = bytesOf(b);
    int before = std::memcmp(x.data, y.data, std::min(x.size, y.size));
    return before != 0 ? before < 0 : x.size != y.size ? x.size < y.size : a < b;
  });
  Buffer<uint32_t> open;
  for (size_t i = 0; i < order.size(); ++i) {
    Bytes text = bytesOf(order[i]);
    if (text.size == 0 || text.size > UINT16_MAX)
      continue;
    size_t common = 0;
    while (common < open.size() && common < text.size && nodes[open[common]].byte == uint8_t(text.data[common]))
      ++common;
    while (open.size() > common)
      nodes[open.pop()].end = uint32_t(nodes.size());
    for (size_t at = common; at < text.size; ++at) {
      open.push(uint32_t(nodes.size()));
      nodes.push({uint8_t(text.data[at]), uint16_t(at), 0, -1});
    }
    if (open.failed() || nodes.failed())
      return false;
    Node &last = nodes[open.back()];
    same[size_t(order[i])] = last.token;
    last.token = order[i];
    longest = std::max(longest, uint32_t(text.size));
  }
  while (open.size() > 0)
    nodes[open.pop()].end = uint32_t(nodes.size());
  return true;
}

//===--- stacks -------------------------------------------------------------------===//

static uint32_t mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15u;
  return uint32_t(value >> 32);
}

/// Puts all entries of a table of indices into one of twice the size.
template <typename Hash> static bool growTable(Buffer<uint32_t> &table, size_t count, Hash hash) {
  if (table.size() > 2 * count + 16)
    return true;
  size_t size = std::max<size_t>(64, table.size() * 2);
  table.clear();
  if (!table.fill(size, 0))
    return false;
  for (uint32_t i = 0; i < count; ++i) {
    size_t at = hash(i) & (size - 1);
    while (table[at] != 0)
      at = (at + 1) & (size - 1);
    table[at] = i + 1;
  }
  return true;
}

uint32_t GrammarMatcher::frameOf(uint32_t element, uint32_t parent) {
  auto hash = [&](uint32_t i) { return mix(uint64_t(frames[i].element) << 32 | frames[i].parent); };
  if (!growTable(frameTable, frames.size(), hash) || frames.size() >= mostFrames)
    return none;
  size_t mask = frameTable.size() - 1, at = mix(uint64_t(element) << 32 | parent) & mask;
  for (; frameTable[at] != 0; at = (at + 1) & mask)
    if (frames[frameTable[at] - 1].element == element && frames[frameTable[at] - 1].parent == parent)
      return frameTable[at] - 1;
  frames.push({element, parent});
  frameTable[at] = uint32_t(frames.size());
  return frames.failed() ? none : uint32_t(frames.size()) - 1;
}

/// Adds to `found` the places where a byte is next, from a place in an alternative. Rules that begin with themselves have been refused, so
/// this ends; at the end of an alternative nothing is left to return to, so that repetitions make no stacks.
bool GrammarMatcher::expand(uint32_t element, uint32_t parent) {
  size_t done = work.size();
  work.push({element, parent});
  for (; done < work.size(); ++done) {
    if (work.failed() || found.failed() || work.size() > 65536)
      return false;
    Frame at = work[done];
    const Grammar::Element &e = grammar->elements[at.element];
    auto add = [&](uint32_t to, uint32_t above) {
      for (size_t i = 0; i < work.size(); ++i)
        if (work[i].element == to && work[i].parent == above)
          return;
      work.push({to, above});
    };
    if (e.kind == Grammar::Kind::End) {
      if (at.parent == none)
        accepts = true;
      else
        add(frames[at.parent].element, frames[at.parent].parent);
    } else if (e.kind == Grammar::Kind::Set) {
      uint32_t frame = frameOf(at.element, at.parent);
      if (frame == none)
        return false;
      found.push(frame);
    } else {
      uint32_t above = at.parent;
      if (grammar->elements[at.element + 1].kind != Grammar::Kind::End && (above = frameOf(at.element + 1, at.parent)) == none)
        return false;
      for (uint32_t a = grammar->rules[e.index]; a != none; a = grammar->alternatives[a].next)
        add(grammar->alternatives[a].first, above);
    }
  }
  return true;
}

/// The state of the places in `found`.
uint32_t GrammarMatcher::stateOf() {
  std::sort(found.data(), found.data() + found.size());
  size_t count = size_t(std::unique(found.data(), found.data() + found.size()) - found.data());
  found.shrink(count);
  if (count == 0 && !accepts)
    return none;
  auto hashOf = [](const uint32_t *ids, size_t n, bool end) {
    uint64_t h = n * 2 + end;
    for (size_t i = 0; i < n; ++i)
      h = (h ^ ids[i]) * 0x100000001b3u;
    return mix(h);
  };
  auto hash = [&](uint32_t i) { return hashOf(members.data() + states[i].first, states[i].count, states[i].accepts); };
  if (!growTable(stateTable, states.size(), hash) || states.size() >= mostStates)
    return unknown;
  size_t mask = stateTable.size() - 1, at = hashOf(found.data(), count, accepts) & mask;
  for (; stateTable[at] != 0; at = (at + 1) & mask) {
    const State &s = states[stateTable[at] - 1];
    if (s.count == count && s.accepts == accepts && (count == 0 || std::memcmp(members.data() + s.first, found.data(), count * 4) == 0))
      return stateTable[at] - 1;
  }
  states.push({uint32_t(members.size()), uint32_t(count), accepts, none});
  members.append(found.data(), count);
  next.fill(256, unknown);
  stateTable[at] = uint32_t(states.size());
  return states.failed() || members.failed() || next.failed() ? unknown : uint32_t(states.size()) - 1;
}

/// The state behind a byte; none: the byte is not allowed; unknown: it could not be found out.
uint32_t GrammarMatcher::step(uint32_t state, uint8_t byte) {
  uint32_t known = next[size_t(state) * 256 + byte];
  if (known != unknown)
    return known;
  work.clear();
  found.clear();
  accepts = false;
  for (uint32_t i = 0; i < states[state].count; ++i) {
    Frame frame = frames[members[states[state].first + i]];
    if (grammar->sets[grammar->elements[frame.element].index].has(byte) && !expand(frame.element + 1, frame.parent))
      return unknown;
  }
  uint32_t to = stateOf();
  if (to != unknown)
    next[size_t(state) * 256 + byte] = to;
  return to;
}

/// Drops all states but the current one, where there are too many.
bool GrammarMatcher::forget() {
  if (states.size() < usualStates)
    return true;
  found.clear();
  found.append(members.data() + states[current].first, states[current].count);
  accepts = states[current].accepts;
  states.clear();
  stateTable.clear();
  members.clear();
  next.clear();
  maskOwners.clear();
  masks.clear();
  nextMask = 0;
  start = none;
  current = stateOf();
  return current != unknown;
}

bool GrammarMatcher::reset(const Grammar &given, const TokenTree &givenTree, uint64_t givenIdentity, int32_t vocabulary) {
  if (identity != givenIdentity) {
    frames.clear();
    frameTable.clear();
    states.clear();
    stateTable.clear();
    members.clear();
    next.clear();
    masks.clear();
    maskOwners.clear();
    nextMask = 0;
    start = none;
  }
  grammar = &given;
  tree = &givenTree;
  identity = givenIdentity;
  words = (size_t(vocabulary) + 63) / 64;
  if (start == none) {
    work.clear();
    found.clear();
    accepts = false;
    for (uint32_t a = grammar->rules[grammar->root]; a != none; a = grammar->alternatives[a].next)
      if (!expand(grammar->alternatives[a].first, none))
        return false;
    start = stateOf();
  }
  current = start;
  return start != unknown && start != none;
}

bool GrammarMatcher::advance(Bytes bytes) {
  for (size_t i = 0; i < bytes.size; ++i) {
    uint32_t to = step(current, uint8_t(bytes.data[i]));
    if (to == none || to == unknown)
      return false;
    current = to;
  }
  return forget();
}

bool GrammarMatcher::fillMask(uint64_t *mask) {
  path.clear();
  if (!path.fill(tree->longest + 1, none))
    return false;
  path[0] = current;
  const TokenTree::Node *nodes = tree->nodes.data();
  for (uint32_t i = 0, n = uint32_t(tree->nodes.size()); i < n;) {
    const TokenTree::Node &node = nodes[i];
    uint32_t from = path[node.depth], to = next[size_t(from) * 256 + node.byte];
    if (to == unknown && (to = step(from, node.byte)) == unknown)
      return false;
    if (to == none) {
      i = node.end;
      continue;
    }
    path[node.depth + 1u] = to;
    for (int32_t id = node.token; id >= 0; id = tree->same[size_t(id)])
      mask[id >> 6] |= uint64_t(1) << (id & 63);
    ++i;
  }
  if (states[current].accepts)
    for (size_t i = 0; i < tree->ends.size(); ++i)
      mask[tree->ends[i] >> 6] |= uint64_t(1) << (tree->ends[i] & 63);
  return true;
}

const uint64_t *GrammarMatcher::allowed() {
  uint32_t slot = states[current].mask;
  if (slot == none) {
    slot = uint32_t(nextMask++ % mostMasks);
    if (slot < maskOwners.size()) {
      states[maskOwners[slot]].mask = none;
      std::fill_n(masks.data() + slot * words, words, 0);
    } else {
      maskOwners.push(current);
      if (!masks.fill(words, 0) || maskOwners.failed())
        return nullptr;
    }
    maskOwners[slot] = current;
    if (!fillMask(masks.data() + slot * words))
      return nullptr;
    states[current].mask = slot;
  }
  const uint64_t *mask = masks.data() + slot * words;
  anyAllowed = false;
  for (size_t i = 0; i < words && !anyAllowed; ++i)
    anyAllowed = mask[i] != 0;
  return mask;
}

} // namespace ajour::language
