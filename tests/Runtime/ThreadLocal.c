// Code with thread-local storage.
_Thread_local int counter = 3;
int test_add(void) { return counter++; }
