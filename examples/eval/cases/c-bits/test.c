#include <stdio.h>

#include "bits.h"

int main(void) {
	if (ones(0) != 0 || ones(7) != 3 || ones(-1) != 8 * (int)sizeof(int)) {
		printf("ones: %d, %d, %d\n", ones(0), ones(7), ones(-1));
		return 1;
	}
	if (highest(0) != -1 || highest(1) != 0 || highest(40) != 5) {
		printf("highest: %d, %d, %d\n", highest(0), highest(1), highest(40));
		return 1;
	}
	return 0;
}
