/// The four ways in which a piece of text becomes tokens.
#ifndef AJOUR_LIB_LANGUAGE_MODELS_H
#define AJOUR_LIB_LANGUAGE_MODELS_H

#include "Flat.h"
#include "ajour/Language/Text.h"
#include "ajour/Language/Tokenizer.h"

namespace ajour::language {

/// Appends the tokens of one piece.
TextStatus encodePiece(const tokenizer::Tokenizer &tokenizer, Bytes piece, Buffer<int32_t> &ids);

} // namespace ajour::language

#endif
