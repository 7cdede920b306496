#include "copy.h"

size_t copy(char *buffer, const char *string, size_t size) {
	size_t n = 0;
	while (n < size && string[n]) {
		buffer[n] = string[n];
		n++;
	}
	buffer[n] = 0;
	return n;
}
