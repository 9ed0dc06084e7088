package board

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcess(t *testing.T) {
	require.Greater(t, memory(), 1e6)
	before := cpuTime()
	for begin := time.Now(); cpuTime() == before && before > 0 && time.Since(begin) < time.Minute; {
	}
	require.True(t, before == 0 || cpuTime() > before)
}
