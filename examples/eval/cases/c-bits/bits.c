#include "bits.h"

int ones(int number) {
	int count = 0;
	for (; number > 0; number /= 2)
		count += number % 2;
	return count;
}
