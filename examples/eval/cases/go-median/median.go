// Package median finds the middle of numbers.
package median

import "slices"

// Of returns the median of numbers, of which there is at least one.
func Of(numbers []float64) float64 {
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}
