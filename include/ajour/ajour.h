/* Ajour runtime: loads .ajour files and runs them.
 *
 *   ajour_model *model;
 *   ajour_session *session;
 *   if (ajour_model_load_file("net.ajour", NULL, &model) != AJOUR_OK) { puts(ajour_last_message()); ... }
 *   ajour_session_create(model, NULL, &session);
 *   ajour_session_set_input(session, 0, pixels, NULL, 0);
 *   ajour_session_run(session);
 *   ajour_session_output(session, 0, &view);
 *
 * Conventions. A function that can fail returns an ajour_status_code and leaves a message for the
 * calling thread (ajour_last_message); on failure its results are untouched, unless said otherwise.
 * Names and strings are UTF-8 and belong to the object that they were asked from. Sizes are bytes,
 * times are nanoseconds. Structures start with struct_size, which the caller sets to sizeof the
 * structure (AJOUR_INIT does that): they may grow at their end in later versions.
 *
 * Threads. A model is immutable: every ajour_model_* function but ajour_model_destroy may be called
 * from any number of threads at once. A session is used by one thread at a time, except that
 * ajour_session_cancel may be called from any thread while the session exists. Different sessions
 * are independent, also those of one model.
 *
 * The runtime never aborts, exits, throws or prints. ajour_session_run does not allocate. */
#ifndef AJOUR_AJOUR_H
#define AJOUR_AJOUR_H

#include <stddef.h>
#include <stdint.h>

#include "ajour/ABI/ElementTypes.h"
#include "ajour/ABI/StaticCode.h"
#include "ajour/ABI/StatusCodes.h"

#if defined(__GNUC__)
#define AJOUR_API __attribute__((visibility("default")))
#else
#define AJOUR_API
#endif

#ifdef __cplusplus
extern "C" {
#define AJOUR_INIT(Type) ([] { Type fresh = {}; fresh.struct_size = sizeof(Type); return fresh; }())
#else
#define AJOUR_INIT(Type) ((Type){.struct_size = sizeof(Type)})
#endif

#define AJOUR_MAX_RANK 8

typedef struct ajour_model ajour_model;
typedef struct ajour_session ajour_session;

/* ---- Messages --------------------------------------------------------------------------------- */

/* Version of this library, "major.minor.patch". */
AJOUR_API const char *ajour_version(void);
/* What a status code means, in a few words; "unknown status" for other numbers. */
AJOUR_API const char *ajour_status_text(int status);
/* The message of this thread's last failed call, "" when none failed. Valid until this thread's
 * next failing call. It names the file or tensor, what was expected and what was found. */
AJOUR_API const char *ajour_last_message(void);

/* ---- CPU -------------------------------------------------------------------------------------- */

/* Name of the best code level of this CPU ("avx512vnni", "dotprod", ...; ajour/ABI/CpuFeatures.h),
 * or "none". The environment variable AJOUR_CPU is not considered. */
AJOUR_API const char *ajour_cpu_level_name(void);
/* Bits of the CPU's features (ajour/ABI/CpuFeatures.h) that the operating system lets us use. */
AJOUR_API uint64_t ajour_cpu_feature_bits(void);
/* Number of performance cores that this process may run on, at least 1: the default thread count. */
AJOUR_API uint32_t ajour_cpu_performance_cores(void);

/* ---- Models ----------------------------------------------------------------------------------- */

enum {
  /* Do not read the weights to compare their checksum: loading touches none of their pages. Code and
   * description are always checked. */
  AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS = 1,
  /* Read the file into memory instead of mapping it; with ajour_model_load_memory: copy it. */
  AJOUR_LOAD_COPY = 2,
};

typedef struct ajour_load_options {
  size_t struct_size;
  uint32_t flags;         /* AJOUR_LOAD_* */
  const char *cpu_level;  /* force this code level; null: the environment's AJOUR_CPU, else the best */
  uint64_t memory_budget; /* refuse (AJOUR_OUT_OF_MEMORY) a model whose weights, code and description
                             take more bytes than this; 0: no limit */
  const char *name;       /* how messages call the artifact; null: the path, or "artifact" */
  const ajour_static_code *static_code; /* for an artifact of --emit=static: the table that its object file defines,
                                           PREFIX_code; no executable memory is asked for then */
} ajour_load_options;

/* Loads the artifact at `path`. Its weights are mapped, not copied: the file must not be changed or
 * truncated while the model lives. `options` may be null.
 * Errors: IO, BAD_FILE, CHECKSUM, VERSION, NO_VARIANT, OUT_OF_MEMORY, INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_model_load_file(const char *path, const ajour_load_options *options,
                                                  ajour_model **model);
/* The same from byte `offset` of an open file (an asset inside a package). `size` bytes belong to the
 * artifact; 0: up to the end of the file. An offset that is not a multiple of the page size makes the
 * runtime read instead of map. The descriptor may be closed afterwards. */
AJOUR_API ajour_status_code ajour_model_load_fd(int fd, uint64_t offset, uint64_t size,
                                                const ajour_load_options *options, ajour_model **model);
/* The same from memory, which must stay unchanged while the model lives, unless AJOUR_LOAD_COPY is
 * given. Memory that is not aligned to 64 bytes is copied. */
AJOUR_API ajour_status_code ajour_model_load_memory(const void *data, size_t size,
                                                    const ajour_load_options *options, ajour_model **model);
/* Releases the caller's hold on the model; its sessions keep what they need. Null is ignored. */
AJOUR_API void ajour_model_destroy(ajour_model *model);

typedef struct ajour_model_info {
  size_t struct_size;
  const char *compiler;      /* version of the compiler that made the artifact */
  const char *source;        /* name of the model file that it was made from */
  uint32_t format_major;
  uint32_t format_minor;
  const char *arch;          /* "x86-64" or "aarch64" */
  const char *cpu_level;     /* the highest code level in use */
  uint64_t file_bytes;
  uint64_t weight_bytes;     /* constant segments */
  uint64_t code_bytes;       /* memory of the loaded executables */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t symbol_count;
  uint32_t dispatch_count;
  int mapped;                /* 1: weights are mapped from the file, 0: they are in memory */
  uint32_t state_count;      /* values that a session keeps between runs */
  uint64_t weight_count;     /* weights of the model as it came, before any was stored in another way; 0: not known */
} ajour_model_info;

AJOUR_API ajour_status_code ajour_model_get_info(const ajour_model *model, ajour_model_info *info);

/* A model input or output. A dimension of size -1 is symbolic: dim_names has its name (null for one
 * computed from others), dim_min and dim_max its bounds (dim_max -1: none), and its size must be a multiple
 * of dim_multiple. For a static dimension both bounds are its size. */
typedef struct ajour_tensor_info {
  size_t struct_size;
  const char *name;
  uint32_t element_type; /* ajour_element_type */
  uint32_t rank;
  int64_t dims[AJOUR_MAX_RANK];
  const char *dim_names[AJOUR_MAX_RANK];
  int64_t dim_min[AJOUR_MAX_RANK];
  int64_t dim_max[AJOUR_MAX_RANK];
  float scale;           /* real value = scale * (stored value - zero_point); 0: not quantised */
  int32_t zero_point;
  int64_t dim_multiple[AJOUR_MAX_RANK];
} ajour_tensor_info;

/* Errors: INVALID_ARGUMENT (no such index). */
AJOUR_API ajour_status_code ajour_model_input(const ajour_model *model, uint32_t index, ajour_tensor_info *info);
AJOUR_API ajour_status_code ajour_model_output(const ajour_model *model, uint32_t index, ajour_tensor_info *info);
/* Index of the input or output of that name, or -1. */
AJOUR_API int ajour_model_find_input(const ajour_model *model, const char *name);
AJOUR_API int ajour_model_find_output(const ajour_model *model, const char *name);

/* A value that a session keeps between runs: each run reads what the one before it wrote. Its dimensions are
 * static. Errors: INVALID_ARGUMENT (no such index). */
AJOUR_API ajour_status_code ajour_model_state(const ajour_model *model, uint32_t index, ajour_tensor_info *info);
/* Bytes that ajour_session_save_state writes. */
AJOUR_API uint64_t ajour_model_saved_state_bytes(const ajour_model *model);

/* A symbolic dimension: the size of dimension `dim` of input `input`, a multiple of `multiple`. */
typedef struct ajour_symbol_info {
  size_t struct_size;
  const char *name;
  int64_t min;
  int64_t max; /* -1: no bound */
  uint32_t input;
  uint32_t dim;
  int64_t multiple;
} ajour_symbol_info;

AJOUR_API ajour_status_code ajour_model_symbol(const ajour_model *model, uint32_t index, ajour_symbol_info *info);

/* One compiled step of the model. */
typedef struct ajour_dispatch_info {
  size_t struct_size;
  const char *name;
  const char *kind;
  const char *cpu_level;  /* level of the chosen variant */
  uint32_t node_count;    /* the user's nodes that it computes */
  uint32_t operand_count;
} ajour_dispatch_info;

AJOUR_API ajour_status_code ajour_model_dispatch(const ajour_model *model, uint32_t index, ajour_dispatch_info *info);
/* Name of the user's node number `node` of a dispatch, or null. */
AJOUR_API const char *ajour_model_dispatch_node(const ajour_model *model, uint32_t dispatch, uint32_t node);

/* ---- Memory, before any session exists -------------------------------------------------------- */

enum {
  /* Give every intermediate its own memory, so that an observer may look at all of them after a run. */
  AJOUR_SESSION_KEEP_INTERMEDIATES = 1,
  /* Start with the profile switched on. */
  AJOUR_SESSION_PROFILE = 2,
};

typedef struct ajour_session_options {
  size_t struct_size;
  uint32_t flags;         /* AJOUR_SESSION_* */
  uint32_t threads;       /* 0: the number of performance cores; at most 256 */
  uint64_t memory_budget; /* refuse (AJOUR_OUT_OF_MEMORY) to hold more bytes than this; 0: no limit */
} ajour_session_options;

typedef struct ajour_memory_info {
  size_t struct_size;
  uint64_t weight_bytes;  /* shared by all sessions; file pages when mapped */
  uint64_t code_bytes;    /* shared by all sessions */
  uint64_t arena_bytes;   /* intermediates */
  uint64_t io_bytes;      /* inputs and outputs */
  uint64_t scratch_bytes; /* all threads together */
  uint64_t session_bytes; /* arena + io + scratch + state: what a session of these options holds */
  uint64_t state_bytes;   /* what is kept between runs */
} ajour_memory_info;

/* What a session would hold. `sizes` gives the size of each symbolic dimension (symbol_count
 * values); null: their upper bounds. `options` may be null.
 * Errors: SHAPE (a size is out of bounds or no multiple, or null given and a dimension has no bound). */
AJOUR_API ajour_status_code ajour_model_memory(const ajour_model *model, const ajour_session_options *options,
                                               const int64_t *sizes, ajour_memory_info *info);

/* What travels with the model under a name, "tokenizer" for example: its bytes, valid as long as the model; checked
 * against their checksum on every call. Errors: INVALID_ARGUMENT (nothing of that name), CHECKSUM. */
AJOUR_API ajour_status_code ajour_model_attachment(const ajour_model *model, const char *name, const void **data,
                                                   size_t *bytes);

/* ---- Sessions --------------------------------------------------------------------------------- */

/* Creates a session: memory for its tensors (planned at the bounds of symbolic dimensions when all
 * have one) and its threads. `options` may be null. Errors: OUT_OF_MEMORY, SHAPE, INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_session_create(ajour_model *model, const ajour_session_options *options,
                                                 ajour_session **session);
/* Must not be called while the session runs. Null is ignored. */
AJOUR_API void ajour_session_destroy(ajour_session *session);

/* Binds the session's worker threads (not the caller's) to these CPUs, in turn. When some cannot be
 * bound: AJOUR_AFFINITY, and the session works on with those threads unbound. */
AJOUR_API ajour_status_code ajour_session_set_affinity(ajour_session *session, const uint32_t *cpus, uint32_t count);

/* States the shape of an input before its data are written with ajour_session_input_data. Shapes may
 * be set in any order; they are compared with each other once all are known. May allocate. Does not
 * keep the input's contents if its shape changes. Errors: SHAPE, OUT_OF_MEMORY, INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_session_set_input_shape(ajour_session *session, uint32_t index,
                                                          const int64_t *shape, uint32_t rank);
/* Copies dense row-major data in. `shape` null: the static or last set shape. `data` may be null when
 * the tensor has no elements. Errors as above. */
AJOUR_API ajour_status_code ajour_session_set_input(ajour_session *session, uint32_t index, const void *data,
                                                    const int64_t *shape, uint32_t rank);
/* Memory of an input for the caller to fill in place; marks it as set. The pointer is valid until the
 * input's shape changes. Errors: STATE (no shape yet), INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_session_input_data(ajour_session *session, uint32_t index, void **data,
                                                     size_t *bytes);

typedef struct ajour_tensor_view {
  size_t struct_size;
  const void *data; /* dense, row-major */
  size_t bytes;
  uint32_t element_type;
  uint32_t rank;
  int64_t dims[AJOUR_MAX_RANK];
} ajour_tensor_view;

/* An output after a run. The data are valid until the next run, or change of an input's shape.
 * Before a first run, the shape is the one to come and the contents are unspecified.
 * Errors: STATE (shapes not known yet), INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_session_output(ajour_session *session, uint32_t index, ajour_tensor_view *view);

/* Runs the model on the inputs set; they stay set. Errors: STATE (an input is missing), SHAPE (inputs
 * contradict each other), CANCELLED (outputs unspecified; the session can run again). */
AJOUR_API ajour_status_code ajour_session_run(ajour_session *session);
/* Stops the run in progress, if any, between two chunks of work. From any thread. */
AJOUR_API void ajour_session_cancel(ajour_session *session);

/* ---- State ------------------------------------------------------------------------------------ */

/* A session starts with the model's initial values in its states. A run that ends with AJOUR_OK takes them on to the
 * next; after any other the states are what they were before it, so that it may be repeated - unless the model
 * changes some in place, as ones too large to hold twice: then ajour_session_run fails with AJOUR_STATE until they are reset or
 * restored. All functions here are exact, and none changes anything on failure. */

/* Back to the initial values. */
AJOUR_API ajour_status_code ajour_session_reset_state(ajour_session *session);
/* Copies all states into `memory` of at least ajour_model_saved_state_bytes bytes, to be restored in any session of this model,
 * also compiled anew or for another CPU. Errors: INVALID_ARGUMENT (too small), STATE (see above). */
AJOUR_API ajour_status_code ajour_session_save_state(const ajour_session *session, void *memory, size_t bytes);
/* Errors: BAD_FILE (not saved from this model), VERSION, CHECKSUM. */
AJOUR_API ajour_status_code ajour_session_restore_state(ajour_session *session, const void *memory, size_t bytes);
/* A view of the value that the next run will read, valid until then. Errors: INVALID_ARGUMENT, STATE. */
AJOUR_API ajour_status_code ajour_session_state(const ajour_session *session, uint32_t index, ajour_tensor_view *view);
/* Gives one state a value, dense and row-major. Errors: INVALID_ARGUMENT (no such index, other size). */
AJOUR_API ajour_status_code ajour_session_set_state(ajour_session *session, uint32_t index, const void *data,
                                                    size_t bytes);

/* What the session holds now. */
AJOUR_API ajour_status_code ajour_session_memory(const ajour_session *session, ajour_memory_info *info);
/* Number of threads that work, the caller's included. */
AJOUR_API uint32_t ajour_session_threads(const ajour_session *session);

/* ---- Text: tokenizers ------------------------------------------------------------------------- */

/* docs/LANGUAGE_MODELS.md says which models these functions take, with an example. */

typedef struct ajour_tokenizer ajour_tokenizer;
typedef struct ajour_grammar ajour_grammar;
typedef struct ajour_generator ajour_generator;

/* Opens the tokenizer that travels with the model. It is immutable, keeps what it needs of the model alive, and may be used
 * from any number of threads at once. Errors: INVALID_ARGUMENT (the model has none), BAD_FILE, CHECKSUM, OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_tokenizer_create(ajour_model *model, ajour_tokenizer **tokenizer);
/* The same of a description (include/ajour/ABI/Tokenizer.fbs) in memory, aligned to 4 bytes, that must outlive it. */
AJOUR_API ajour_status_code ajour_tokenizer_create_memory(const void *description, size_t bytes, ajour_tokenizer **tokenizer);
/* Null is ignored. Generators and grammars must be destroyed first. */
AJOUR_API void ajour_tokenizer_destroy(ajour_tokenizer *tokenizer);

typedef struct ajour_tokenizer_info {
  size_t struct_size;
  int32_t size;              /* tokens are 0 to size - 1 */
  int32_t bos;               /* -1: none */
  int32_t eos;               /* -1: none */
  uint32_t longest_token;    /* bytes */
  const char *chat_template; /* the model's own, "" when it has none */
} ajour_tokenizer_info;

AJOUR_API ajour_status_code ajour_tokenizer_get_info(const ajour_tokenizer *tokenizer, ajour_tokenizer_info *info);

enum {
  /* Put the model's begin and end tokens around the text; the begin token comes once, also where the text has it. */
  AJOUR_TEXT_ADD_SPECIAL = 1,
  /* Read, or write, control tokens as their texts. Only for texts that may give commands, as rendered chats. */
  AJOUR_TEXT_SPECIAL = 2,
};

/* The tokens of a UTF-8 text. Writes at most `capacity` of them and sets *count to how many there are; tokens may be null when
 * capacity is 0. Errors: INVALID_ARGUMENT (too long, unknown flags, a text that takes the tokenizer too many steps), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_tokenizer_encode(const ajour_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t flags,
                                                   int32_t *tokens, size_t capacity, size_t *count);
/* The text of tokens; bytes that are no UTF-8 become U+FFFD. Writes at most `capacity` bytes and no final zero, sets *bytes to the
 * whole length. Errors: INVALID_ARGUMENT (no such token, unknown flags), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_tokenizer_decode(const ajour_tokenizer *tokenizer, const int32_t *tokens, size_t count, uint32_t flags,
                                                   char *text, size_t capacity, size_t *bytes);
/* Whether a model that says this token has said all. */
AJOUR_API int ajour_tokenizer_ends_generation(const ajour_tokenizer *tokenizer, int32_t token);

/* ---- Text: chats ------------------------------------------------------------------------------ */

/* One turn of a chat: "system", "user", "assistant" or what else the model's template knows. */
typedef struct ajour_chat_message {
  const char *role;
  const char *content; /* UTF-8; null: the message has none */
  const char *members; /* a JSON object of further members ("tool_calls", ...); null: none */
} ajour_chat_message;

typedef struct ajour_chat_options {
  size_t struct_size;
  int add_generation_prompt;  /* 1: the text ends where the model's answer begins */
  const char *variables;      /* a JSON object of what else the template sees ("tools", "enable_thinking", ...); null: nothing */
  const char *chat_template;  /* null: the model's own */
  int64_t now;                /* seconds since 1970 for strftime_now; 0: the present time */
} ajour_chat_options;

/* Renders a chat by the model's own template (Jinja; docs/CHAT.md says what of it is known). Writes at most `capacity` bytes and no final
 * zero, sets *bytes to the whole length. The text is to be encoded with AJOUR_TEXT_SPECIAL, and AJOUR_TEXT_ADD_SPECIAL, which adds no second
 * begin token. Nothing is guessed: Errors: INVALID_ARGUMENT (there is no template; it has an error, or uses what is not known, or refuses the
 * messages: the message has the line), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_tokenizer_render_chat(const ajour_tokenizer *tokenizer, const ajour_chat_message *messages, size_t count,
                                                        const ajour_chat_options *options, char *text, size_t capacity, size_t *bytes);

/* ---- Text: grammars --------------------------------------------------------------------------- */

/* Reads a grammar of what may be generated (docs/GRAMMAR.md) for the vocabulary of a tokenizer, which it does not need afterwards. It is
 * immutable and may be used by any number of generators at once. Errors: INVALID_ARGUMENT (the message has line and column), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_grammar_create(const ajour_tokenizer *tokenizer, const char *text, size_t bytes,
                                                 ajour_grammar **grammar);
/* Null is ignored. */
AJOUR_API void ajour_grammar_destroy(ajour_grammar *grammar);

/* ---- Text: generation ------------------------------------------------------------------------- */

/* Drives a language model's session: keeps what the model has seen, chooses tokens, gives out whole UTF-8 text. The session must
 * outlive the generator and is not used otherwise meanwhile. As a session, a generator is used by one thread at a time, but
 * ajour_generator_cancel may be called from any. After creation, prompts and generation do not allocate, except for texts longer
 * than any before where the model has no bound of its length. The tokenizer may be null: tokens without text.
 * Errors: INVALID_ARGUMENT (the model is no language model; says why), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_generator_create(ajour_session *session, const ajour_tokenizer *tokenizer,
                                                   ajour_generator **generator);
AJOUR_API void ajour_generator_destroy(ajour_generator *generator);

typedef struct ajour_generator_info {
  size_t struct_size;
  int64_t context;     /* most tokens in all; -1: no bound */
  int64_t batch;       /* tokens that the model takes in one run */
  int32_t vocabulary;  /* logits of a token */
  int rewinds;         /* 1: the model goes back to any earlier token for nothing; 0: only to kept states (see _set_prompt) */
  uint64_t saved_bytes; /* what ajour_generator_save writes at most, now */
} ajour_generator_info;

AJOUR_API ajour_status_code ajour_generator_get_info(const ajour_generator *generator, ajour_generator_info *info);

/* Makes these tokens the whole of what the model has seen, and knows what it expects next. As many as possible of the first ones are
 * taken over from before: the longest common beginning where the model rewinds, else what it has seen itself if that is a beginning, or
 * what it had seen at the end of the last prompt. *reused (may be null) says how many. A run is at most one batch of tokens.
 * Errors: INVALID_ARGUMENT (no tokens, no such token), SHAPE (more than the context), CANCELLED; after the latter those tokens
 * are kept whose batches were done. */
AJOUR_API ajour_status_code ajour_generator_set_prompt(ajour_generator *generator, const int32_t *tokens, size_t count,
                                                       size_t *reused);
/* Forgets everything. */
AJOUR_API ajour_status_code ajour_generator_reset(ajour_generator *generator);
/* The tokens so far: prompt and generated. Valid until the generator's next call. */
AJOUR_API ajour_status_code ajour_generator_tokens(const ajour_generator *generator, const int32_t **tokens, size_t *count);
/* The logits of the next token, valid until the generator's next call. Errors: STATE (no prompt yet, or the last token has not been
 * given to the model because generation ended with it). */
AJOUR_API ajour_status_code ajour_generator_logits(const ajour_generator *generator, const float **logits, size_t *count);

/* One generated token, and the text that is certain now: whole UTF-8, nothing that could become a stop string. It may be empty, and is
 * not terminated. A last call with token -1 brings what was held back until the end. */
typedef struct ajour_generated {
  size_t struct_size;
  int32_t token;
  const char *text;
  size_t bytes;
} ajour_generated;

/* Returns 0 to go on, other numbers to end. It may cancel the generator and call nothing else of it. */
typedef int (*ajour_text_callback)(void *user, const ajour_generated *generated);

enum {
  AJOUR_GENERATE_IGNORE_END = 1, /* the tokens that end texts are never chosen */
  AJOUR_GENERATE_SPECIAL = 2,    /* control tokens have text */
};

/* Of zeros: the most likely token each time, up to the model's end. Choice: penalties, then of the top_k most likely those fewest
 * that reach top_p, of them those that are at least min_p times as likely as the best, at this temperature. */
typedef struct ajour_generate_options {
  size_t struct_size;
  uint32_t flags;            /* AJOUR_GENERATE_* */
  float temperature;         /* 0: the most likely token */
  int32_t top_k;             /* 0: all */
  float top_p;               /* 0 and 1: all */
  float min_p;               /* 0: all */
  float repetition_penalty;  /* divides positive and multiplies negative logits of recent tokens; 0 and 1: none */
  float frequency_penalty;   /* taken off for each time that a recent token was said */
  float presence_penalty;    /* taken off of recent tokens once */
  int32_t penalty_window;    /* how many tokens back are recent; 0: 64; -1: all */
  uint64_t seed;             /* the same seed gives the same choices; a generator that goes on with the seed it had goes on in its row */
  uint64_t max_tokens;       /* 0: no limit but the context */
  const char *const *stops;  /* generation ends before these texts */
  uint32_t stop_count;
  const ajour_grammar *grammar; /* what may be said; null: anything. It starts anew with each call. */
  ajour_text_callback callback; /* may be null */
  void *user;
} ajour_generate_options;

typedef enum ajour_end_reason {
  AJOUR_END_MODEL = 0,    /* the model has said all */
  AJOUR_END_STOP = 1,     /* a stop string has come */
  AJOUR_END_LENGTH = 2,   /* max_tokens */
  AJOUR_END_CONTEXT = 3,  /* the context is full */
  AJOUR_END_CALLBACK = 4, /* the callback ended it */
  AJOUR_END_GRAMMAR = 5,  /* the grammar allows no more */
} ajour_end_reason;

typedef struct ajour_generate_result {
  size_t struct_size;
  int end;            /* ajour_end_reason */
  uint64_t tokens;    /* generated now */
} ajour_generate_result;

/* Generates behind what has been seen. `options` and `result` may be null. Errors: STATE (no prompt; the grammar allows no token of the
 * vocabulary; the model gave no number), INVALID_ARGUMENT, CANCELLED (the tokens so far are kept), OUT_OF_MEMORY. */
AJOUR_API ajour_status_code ajour_generator_generate(ajour_generator *generator, const ajour_generate_options *options,
                                                     ajour_generate_result *result);
/* Ends the call in progress, prompt or generation, within a piece of one dispatch. From any thread. Without a call in progress
 * it does nothing. */
AJOUR_API void ajour_generator_cancel(ajour_generator *generator);

/* Tokens and times since the generator's creation. */
typedef struct ajour_generator_stats {
  size_t struct_size;
  uint64_t prompt_tokens;    /* that the model has computed */
  uint64_t prompt_ns;
  uint64_t reused_tokens;    /* of prompts, that were taken over */
  uint64_t generated_tokens;
  uint64_t generate_ns;      /* choice and callbacks included */
} ajour_generator_stats;

AJOUR_API ajour_status_code ajour_generator_get_stats(const ajour_generator *generator, ajour_generator_stats *stats);

/* Everything that later calls depend on - tokens, the model's states, the random row, the logits - into memory, for a generator of any
 * session of the same model. *bytes: capacity in, bytes written out. Errors: INVALID_ARGUMENT (too small: ajour_generator_info), STATE. */
AJOUR_API ajour_status_code ajour_generator_save(const ajour_generator *generator, void *memory, size_t *bytes);
/* Errors: BAD_FILE, VERSION, CHECKSUM; then nothing has changed. */
AJOUR_API ajour_status_code ajour_generator_restore(ajour_generator *generator, const void *memory, size_t bytes);

/* How well the model foretells a text: gives it the tokens anew from an empty state and adds, for each token from number `first` on
 * (at least 1), the negative logarithm of its probability behind the tokens before it, to *nll (nats). Afterwards the generator has
 * seen the tokens but the last. Errors: as ajour_generator_set_prompt. */
AJOUR_API ajour_status_code ajour_generator_score(ajour_generator *generator, const int32_t *tokens, size_t count, size_t first,
                                                  double *nll);

/* ---- Profile and observation ------------------------------------------------------------------ */

/* Switches the profile on (zeroed) or off. */
AJOUR_API ajour_status_code ajour_session_set_profile(ajour_session *session, int enabled);

typedef struct ajour_profile_entry {
  size_t struct_size;
  const char *name;
  const char *kind;
  uint64_t calls;
  uint64_t total_ns;  /* of all calls */
  uint64_t min_ns;
  uint64_t macs;      /* multiply-accumulates of one call at the present shapes */
  uint64_t bytes;     /* operand bytes of one call at the present shapes */
  uint32_t mac_type;  /* ajour_element_type of the wider factor of the macs; 0: not known */
} ajour_profile_entry;

/* The entry of a dispatch. Errors: INVALID_ARGUMENT (no such index). */
AJOUR_API ajour_status_code ajour_session_profile(const ajour_session *session, uint32_t dispatch,
                                                  ajour_profile_entry *entry);

typedef enum ajour_profile_format {
  AJOUR_PROFILE_TEXT = 1,        /* a table, slowest dispatch first, with the user's node names */
  AJOUR_PROFILE_TRACE_JSON = 2,  /* the last run in the trace-event format that trace viewers open */
} ajour_profile_format;

/* Writes the profile to a file; `format` is an ajour_profile_format. Errors: IO, INVALID_ARGUMENT. */
AJOUR_API ajour_status_code ajour_session_write_profile(const ajour_session *session, int format,
                                                        const char *path);
/* The same into memory: at most `capacity` bytes with a final zero. Returns the length of the whole
 * text without the zero, so that a first call with capacity 0 tells how much is needed. */
AJOUR_API size_t ajour_session_format_profile(const ajour_session *session, int format, char *text,
                                              size_t capacity);

typedef struct ajour_observed_result {
  const void *data;
  uint64_t bytes;
  uint32_t buffer; /* index in the program's buffers */
} ajour_observed_result;

typedef struct ajour_observation {
  size_t struct_size;
  uint32_t dispatch;
  const char *name;
  const char *kind;
  uint32_t result_count;
  const ajour_observed_result *results;
} ajour_observation;

/* Called on the running thread after each dispatch, when all of its items are done. It may read the
 * results, cancel the session, and nothing else of the session. Null removes it. */
typedef void (*ajour_observer)(void *user, const ajour_observation *observation);
AJOUR_API ajour_status_code ajour_session_set_observer(ajour_session *session, ajour_observer observer, void *user);

#ifdef __cplusplus
}
#endif
#endif
