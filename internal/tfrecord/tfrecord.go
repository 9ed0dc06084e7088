// Package tfrecord is the frame of the records of TFRecord files, which TensorBoard's event files are too: the length
// of the data (64 bits, little-endian), its checksum, the data, its checksum.
package tfrecord

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of b: its CRC-32C, rotated right by 15 bits with a constant added, as TensorFlow's documentation
// of the format says, so that data with a checksum within has another one.
func Sum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Append appends data as a record.
func Append(b, data []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, Sum(b[start:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, Sum(data))
}
