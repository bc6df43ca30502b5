// Code that calls out.
extern void missing_function(void);
void test_add(void) { missing_function(); }
