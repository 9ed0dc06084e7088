package tfrecord

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The checksum of the standard's own test vector (RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 8a9136aa), masked
// by hand; and a record as TensorFlow's documentation frames it.
func TestMaskedCRC(t *testing.T) {
	crc := uint32(0x8a9136aa)
	require.Equal(t, (crc>>15|crc<<17)+0xa282ead8, Sum(make([]byte, 32)))
}
