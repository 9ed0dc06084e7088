// Package tfrecord writes the framing of TFRecord and TensorBoard's event files: the data's length (64 bits,
// little-endian), its checksum, the data, its checksum.
package tfrecord

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns TensorFlow's masked CRC-32C: rotated right by 15 bits, plus a constant.
func Sum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func Append(b, data []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, Sum(b[start:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, Sum(data))
}
