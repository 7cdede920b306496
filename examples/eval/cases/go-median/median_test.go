package median

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := Of(c.numbers); got != c.want {
			t.Errorf("Of(%v) = %v, want %v", c.numbers, got, c.want)
		}
	}
}

func TestOfKeepsOrder(t *testing.T) {
	numbers := []float64{3, 1, 2}
	Of(numbers)
	if numbers[0] != 3 {
		t.Errorf("Of changed its argument to %v", numbers)
	}
}
