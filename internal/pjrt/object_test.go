package pjrt

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCollectedIfNobodyCloses(t *testing.T) {
	c := openCPU(t, 1)
	before := Live()
	func() {
		_, err := c.Devices()[0].Put(Array{Shape: Shape{Float32, nil}, Data: make([]byte, 4)})
		require.NoError(t, err)
	}()
	for i := 0; Live().Buffers != before.Buffers; i++ {
		require.Less(t, i, 1000, "the collector did not close the buffer")
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	assert.Equal(t, before.Collected+1, Live().Collected)
}
