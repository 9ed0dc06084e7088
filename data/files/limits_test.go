package files

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/lazo-ml/lazo/data/internal/datatest"
	"github.com/lazo-ml/lazo/internal/tfrecord"
)

// Every number that says a size or a limit may be anything: it is an error that names it, or it works. None ends the
// process, hangs, or takes the memory that it speaks of.
func TestR29_anySizeIsAnErrorOrWorks(t *testing.T) {
	// A header that is right, of a record that is larger than any file.
	record := binary.LittleEndian.AppendUint64(nil, math.MaxInt64-2)
	record = binary.LittleEndian.AppendUint32(record, tfrecord.Sum(record))
	largest := idx(0x08, []uint32{1<<31 - 1, 1<<31 - 1, 1})
	datatest.Sizes(t, map[string]func(n int) error{
		"ReadIDX":   func(n int) error { return datatest.Second(ReadIDX(bytes.NewReader(largest), int64(n))) },
		"TFRecords": func(n int) error { return datatest.First(ReadTFRecords(bytes.NewReader(record), int64(n))) },
	})
}
