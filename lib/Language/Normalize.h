/// The steps that change a text before it is cut into pieces.
#ifndef AJOUR_LIB_LANGUAGE_NORMALIZE_H
#define AJOUR_LIB_LANGUAGE_NORMALIZE_H

#include "Flat.h"
#include "ajour/Language/Text.h"
#include "ajour/Language/Tokenizer.h"

namespace ajour::language {

/// Checks one untrusted step. Returns null, or what is wrong.
const char *checkNormal(const tokenizer::Normal &step);

/// Applies the steps of a checked description to `text`.
TextStatus normalize(const tokenizer::Tokenizer &tokenizer, Text &text);

} // namespace ajour::language

#endif
