/* A library that has nothing of what a peer's has. */
int ajour_test_other(void) { return 1; }
