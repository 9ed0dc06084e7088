package toytest

import (
	"testing"

	"github.com/lazo-ml/lazo/internal/mutants/testdata/toy"
)

func TestUntested(t *testing.T) {
	if got := toy.Untested(2); got != 3 {
		t.Errorf("got %d", got)
	}
}

func TestBroken(t *testing.T) {
	got, err := toy.Half(3)
	t.Errorf("always: %d, %v", got, err)
}
