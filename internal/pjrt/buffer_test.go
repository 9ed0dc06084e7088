package pjrt

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aligned returns memory that the CPU plugin can use without a copy.
func aligned(n int) []byte {
	block := make([]byte, n+64)
	at := -uintptr(unsafe.Pointer(&block[0])) % 64
	return block[at:][:n]
}

func TestDelete(t *testing.T) {
	b := put(t, openCPU(t, 1).Devices()[0], Int32, []int32{5})
	require.NoError(t, b.Delete())
	gone, err := b.IsDeleted()
	require.NoError(t, err)
	assert.True(t, gone)
	var typed *Error
	require.ErrorAs(t, b.ToHost(make([]byte, 4)), &typed)
	t.Log(typed)
	_, err = b.View()
	require.ErrorAs(t, err, &typed)
	require.NoError(t, b.Close())
}
