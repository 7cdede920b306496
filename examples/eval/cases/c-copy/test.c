#include <stdio.h>
#include <string.h>

#include "copy.h"

int main(void) {
	char buffer[6];
	memset(buffer, '#', sizeof buffer);
	size_t n = copy(buffer, "longer", 4);
	if (n != 3 || strcmp(buffer, "lon") || buffer[4] != '#') {
		printf("copied %zu bytes: \"%.6s\"\n", n, buffer);
		return 1;
	}
	if (copy(buffer, "ab", 4) != 2 || strcmp(buffer, "ab")) {
		printf("\"ab\" became \"%.6s\"\n", buffer);
		return 1;
	}
	return 0;
}
