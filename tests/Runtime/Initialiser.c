// Code that wants to run when it is loaded.
static volatile int started;
__attribute__((constructor)) static void start(void) { started = started + 1; }
int test_add(void) { return started; }
