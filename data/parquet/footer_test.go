package parquet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// The header's own lengths and depths, in bytes that no writer makes.
func TestF28_footers(t *testing.T) {
	wrap := func(footer []byte) []byte {
		file := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
	}
	for name, row := range map[string]struct {
		file []byte
		err  string
	}{
		"empty":                 {nil, "not a Parquet file"},
		"something else":        {make([]byte, 100), "not a Parquet file"},
		"encrypted":             {[]byte("PARE....\x01\x00\x00\x00PARE"), "encrypted"},
		"length of the footer":  {[]byte("PAR1\xff\xff\xff\xffPAR1"), "4294967295 bytes"},
		"a list of 2^40":        {wrap(append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1<<40)...)), "too early"},
		"a text of 2^40":        {wrap(append([]byte{0x18}, binary.AppendUvarint(nil, 1<<40)...)), "too early"},
		"a map of 2^60":         {wrap(append(append([]byte{0x1b}, binary.AppendUvarint(nil, 1<<60)...), 0x11)), "too early"},
		"lists in lists":        {wrap(append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1<<20)...)), "deep"},
		"structures":            {wrap(bytes.Repeat([]byte{0x1c}, 1<<20)), "deep"},
		"empty schema elements": {wrap(append(append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1<<21)...), make([]byte, 1<<21)...)), "over the limit"},
		"a long number":         {wrap(append([]byte{0x36}, bytes.Repeat([]byte{0xff}, 30)...)), "64 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := allocated(func() { _, err = open(row.file, Format{}) })
			require.ErrorContains(t, err, row.err)
			require.LessOrEqual(t, took, allowed(len(row.file)))
			var format *data.FormatError
			if row.err != "over the limit" {
				require.ErrorAs(t, err, &format)
			}
		})
	}
}
