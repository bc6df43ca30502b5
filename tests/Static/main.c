/* Runs the same model linked in (one.o, two.o) and from an ordinary artifact, and compares the outputs.
 *
 *   main one.ajour two.ajour ordinary.ajour */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "one.h"
#include "two.h"

static void fail(const char *what) {
  printf("%s: %s\n", what, ajour_last_message());
  exit(1);
}

/* Runs on inputs of a fixed pattern and returns the first output, whose size goes to *bytes. */
static char *run(const char *path, const ajour_static_code *code, size_t *bytes) {
  ajour_model *model = NULL;
  ajour_session *session = NULL;
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  options.static_code = code;
  if (ajour_model_load_file(path, &options, &model) || ajour_model_get_info(model, &info))
    fail(path);
  if ((info.code_bytes == 0) != (code != NULL)) {
    printf("%s: %llu bytes of code are loaded\n", path, (unsigned long long)info.code_bytes);
    exit(1);
  }
  if (ajour_session_create(model, NULL, &session))
    fail(path);
  for (uint32_t i = 0; i < info.input_count; ++i) {
    void *data = NULL;
    size_t size = 0;
    if (ajour_session_input_data(session, i, &data, &size))
      fail(path);
    for (size_t k = 0; k < size / sizeof(float); ++k)
      ((float *)data)[k] = (float)(k * 37 % 256) / 255;
  }
  if (ajour_session_run(session) || ajour_session_output(session, 0, &view))
    fail(path);
  char *copy = malloc(view.bytes);
  memcpy(copy, view.data, view.bytes);
  *bytes = view.bytes;
  ajour_session_destroy(session);
  ajour_model_destroy(model);
  return copy;
}

int main(int argc, char **argv) {
  size_t bytes[3];
  if (argc != 4)
    return 2;
  char *outputs[] = {run(argv[1], &one_code, &bytes[0]), run(argv[2], &two_code, &bytes[1]), run(argv[3], NULL, &bytes[2])};
  int same = bytes[0] == bytes[2] && memcmp(outputs[0], outputs[2], bytes[2]) == 0;
  int varies = 0;
  for (size_t i = sizeof(float); i < bytes[2]; ++i)
    varies |= outputs[2][i] != outputs[2][i - sizeof(float)];
  /* `two` is compiled for the lowest level alone: its sums are in another order. */
  int close = bytes[1] == bytes[2];
  for (size_t i = 0; close && i < bytes[2] / sizeof(float); ++i) {
    float a, b;
    memcpy(&a, outputs[1] + i * sizeof(float), sizeof(float));
    memcpy(&b, outputs[2] + i * sizeof(float), sizeof(float));
    close = a - b < 1e-3f && b - a < 1e-3f;
  }
  for (int i = 0; i < 3; ++i)
    free(outputs[i]);
  if (!same || !close || !varies) {
    printf("outputs differ (same %d, close %d, varies %d)\n", same, close, varies);
    return 1;
  }
  /* The table of one is not taken for the other. */
  ajour_model *model = NULL;
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.static_code = &two_code;
  if (ajour_model_load_file(argv[1], &options, &model) != AJOUR_INVALID_ARGUMENT ||
      !strstr(ajour_last_message(), "static_code is of another compilation")) {
    printf("a table of another compilation was taken\n");
    return 1;
  }
  printf("%zu bytes of output, the same\n", bytes[2]);
  return 0;
}
