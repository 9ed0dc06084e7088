package joined

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type job struct {
	Job
	rank int
}

func TestNow(t *testing.T) {
	require.Nil(t, Now())
	first, second := &job{rank: 1}, &job{rank: 2}
	Enter(first)
	require.Same(t, first, Now())
	Enter(second)
	Forget(first)
	require.Same(t, second, Now(), "an earlier job ends")
	Forget(second)
	require.Nil(t, Now())
}
