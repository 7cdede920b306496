#include <stddef.h>

/* copy copies a string into a buffer of size bytes, cut off if it is too long, and always
 * ends it with a NUL. It returns the length of what it copied. */
size_t copy(char *buffer, const char *string, size_t size);
