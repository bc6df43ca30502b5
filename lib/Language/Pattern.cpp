#include "Pattern.h"

#include "ajour/ABI/PatternCode.h"

namespace ajour::language {

namespace {

uint32_t opcode(uint32_t word) { return word & 0xff; }
uint32_t operand(uint32_t word) { return word >> 8; }

} // namespace

bool contains(const flatbuffers::Vector<uint32_t> &ranges, uint32_t codePoint) {
  // The number of ranges that begin at or before the code point.
  uint32_t low = 0, high = ranges.size() / 2;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (ranges.Get(middle * 2) <= codePoint)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && codePoint <= ranges.Get(low * 2 - 1);
}

const char *checkSet(const tokenizer::CharSet *set) {
  if (!set || !set->ranges() || set->ranges()->size() % 2 != 0)
    return "a set of code points is not a list of ranges";
  const auto &ranges = *set->ranges();
  for (uint32_t i = 0; i < ranges.size(); ++i)
    if (i % 2 == 0 ? (i > 0 && ranges.Get(i) <= ranges.Get(i - 1)) : ranges.Get(i) < ranges.Get(i - 1))
      return "the ranges of a set of code points are not sorted";
  return nullptr;
}

const char *checkPattern(const tokenizer::Pattern &pattern) {
  uint32_t length = sizeOf(pattern.code()), sets = sizeOf(pattern.sets());
  if (length == 0 || length >= AJOUR_PATTERN_OPERAND_LIMIT)
    return "a pattern has no code, or too much";
  for (uint32_t i = 0; i < sets; ++i)
    if (const char *problem = checkSet(pattern.sets()->Get(i)))
      return problem;
  unsigned depth = 0;
  for (uint32_t i = 0; i < length; ++i) {
    uint32_t word = pattern.code()->Get(i);
    switch (opcode(word)) {
    case AJOUR_PATTERN_SET:
    case AJOUR_PATTERN_RUN:
    case AJOUR_PATTERN_RUN_ATOMIC:
      if (operand(word) >= sets)
        return "a pattern names a set that it does not have";
      break;
    case AJOUR_PATTERN_AHEAD:
    case AJOUR_PATTERN_NOT_AHEAD:
      if (++depth > AJOUR_PATTERN_DEPTH_LIMIT)
        return "a pattern looks ahead too deeply";
      [[fallthrough]];
    case AJOUR_PATTERN_SPLIT:
    case AJOUR_PATTERN_SPLIT_LAST:
    case AJOUR_PATTERN_JUMP:
      if (operand(word) >= length)
        return "a pattern goes to an instruction that it does not have";
      break;
    case AJOUR_PATTERN_ACCEPT:
      if (depth == 0)
        return "a pattern ends looking ahead where it does not";
      --depth;
      break;
    case AJOUR_PATTERN_MATCH:
    case AJOUR_PATTERN_START:
    case AJOUR_PATTERN_END:
      break;
    default:
      return "a pattern has an unknown instruction";
    }
  }
  uint32_t last = opcode(pattern.code()->Get(length - 1));
  return last == AJOUR_PATTERN_MATCH && depth == 0 ? nullptr : "a pattern does not end in a match";
}

void CodePoints::assign(Bytes bytes) {
  values.clear();
  starts.clear();
  for (size_t at = 0; at < bytes.size;) {
    unsigned length;
    uint32_t codePoint = decodeUtf8(bytes.data + at, bytes.size - at, length);
    values.push(codePoint);
    starts.push(uint32_t(at));
    at += length;
  }
  starts.push(uint32_t(bytes.size));
}

bool Matcher::find(size_t from, size_t &begin, size_t &end) {
  for (begin = from; begin <= size && !exhausted_; ++begin)
    if (match(0, begin, end))
      return true;
  return false;
}

bool Matcher::match(uint32_t pc, size_t from, size_t &end) {
  const auto &code = *pattern.code();
  auto inSet = [&](uint32_t set, size_t at) { return at < size && contains(*pattern.sets()->Get(set)->ranges(), text[at]); };
  size_t base = stack.size();
  size_t position = from;
  for (;;) {
    // A step either moves on or falls back to the last alternative.
    if (budget == 0 || stack.failed()) {
      exhausted_ = true;
      stack.shrink(base);
      return false;
    }
    --budget;
    uint32_t word = code.Get(pc);
    bool alive = true;
    switch (opcode(word)) {
    case AJOUR_PATTERN_MATCH:
    case AJOUR_PATTERN_ACCEPT:
      end = position;
      stack.shrink(base);
      return true;
    case AJOUR_PATTERN_SET:
      alive = inSet(operand(word), position);
      ++position, ++pc;
      break;
    case AJOUR_PATTERN_SPLIT:
      stack.push({operand(word), uint32_t(position), uint32_t(position)});
      ++pc;
      break;
    case AJOUR_PATTERN_SPLIT_LAST:
      stack.push({pc + 1, uint32_t(position), uint32_t(position)});
      pc = operand(word);
      break;
    case AJOUR_PATTERN_JUMP:
      pc = operand(word);
      break;
    case AJOUR_PATTERN_RUN:
    case AJOUR_PATTERN_RUN_ATOMIC: {
      size_t least = position;
      while (inSet(operand(word), position))
        ++position;
      budget -= budget < position - least ? budget : position - least;
      ++pc;
      if (opcode(word) == AJOUR_PATTERN_RUN && position > least)
        stack.push({pc, uint32_t(position - 1), uint32_t(least)});
      break;
    }
    case AJOUR_PATTERN_AHEAD:
    case AJOUR_PATTERN_NOT_AHEAD: {
      size_t ignored;
      // Jumps of a hostile pattern may lead back here.
      if (depth == AJOUR_PATTERN_DEPTH_LIMIT)
        exhausted_ = true;
      ++depth;
      bool found = !exhausted_ && match(pc + 1, position, ignored);
      --depth;
      alive = !exhausted_ && found == (opcode(word) == AJOUR_PATTERN_AHEAD);
      pc = operand(word);
      break;
    }
    case AJOUR_PATTERN_START:
      alive = position == 0;
      ++pc;
      break;
    case AJOUR_PATTERN_END:
      alive = position == size;
      ++pc;
      break;
    }
    if (alive)
      continue;
    if (stack.size() == base)
      return false;
    State &state = stack.back();
    pc = state.pc;
    position = state.position;
    if (state.position > state.least)
      --state.position;
    else
      stack.shrink(stack.size() - 1);
  }
}

} // namespace ajour::language
