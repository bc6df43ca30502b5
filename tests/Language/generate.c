/* A language model continues a text: generate MODEL.ajour TEXT N. Prints what comes, and ends with 1 after a message when something fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ajour/ajour.h"

static int print_text(void *user, const ajour_generated *generated) {
  fwrite(generated->text, 1, generated->bytes, stdout);
  ++*(int *)user;
  return 0;
}

int main(int argc, char **argv) {
  ajour_model *model = NULL;
  ajour_tokenizer *tokenizer = NULL;
  ajour_session *session = NULL;
  ajour_generator *generator = NULL;
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  ajour_generate_result result = AJOUR_INIT(ajour_generate_result);
  int32_t prompt[256];
  size_t count = 0;
  int calls = 0;
  if (argc != 4)
    return 2;
  options.max_tokens = strtoull(argv[3], NULL, 10);
  options.callback = print_text;
  options.user = &calls;
  ajour_status_code status = ajour_model_load_file(argv[1], NULL, &model);
  if (status == AJOUR_OK)
    status = ajour_tokenizer_create(model, &tokenizer);
  if (status == AJOUR_OK)
    status = ajour_session_create(model, NULL, &session);
  if (status == AJOUR_OK)
    status = ajour_generator_create(session, tokenizer, &generator);
  if (status == AJOUR_OK)
    status = ajour_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), AJOUR_TEXT_ADD_SPECIAL, prompt, 256, &count);
  if (status == AJOUR_OK)
    status = ajour_generator_set_prompt(generator, prompt, count < 256 ? count : 256, NULL);
  if (status == AJOUR_OK)
    status = ajour_generator_generate(generator, &options, &result);
  if (status != AJOUR_OK)
    fprintf(stderr, "%s\n", ajour_last_message());
  else
    fprintf(stderr, "%llu tokens, %d calls\n", (unsigned long long)result.tokens, calls);
  ajour_generator_destroy(generator);
  ajour_session_destroy(session);
  ajour_tokenizer_destroy(tokenizer);
  ajour_model_destroy(model);
  return status == AJOUR_OK ? 0 : 1;
}
