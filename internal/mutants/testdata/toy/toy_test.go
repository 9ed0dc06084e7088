package toy

import "testing"

func TestHalf(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: -1, 8: 4} {
		if got, err := Half(n); got != want || err != nil {
			t.Errorf("half of %d: %d, %v", n, got, err)
		}
	}
	if _, err := Half(-1); err == nil {
		t.Error("half of -1")
	}
}
