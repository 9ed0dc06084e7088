package tables

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// Rows that are read in one go are those that are cut up first, and so are the errors, their rows and lines.
func TestCSV_directRowsAreThoseCutUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	number := func() string {
		return pick("", "-", "+") + pick("0", "7", "12.5", ".25", "3.", "0.1000000149011612", "16777217", "9007199254740993", "1234567.125", "00", "0.30000001192092896")
	}
	cells, whole, failed := 0, 0, 0
	for range 4000 {
		columns := 2 + r.IntN(4)
		format := Format{Comma: []rune{',', ';', '\t', '.', '1', '§'}[r.IntN(20)%6]}
		if r.IntN(2) == 0 {
			format.Comma = ','
		}
		fields := r.IntN(4)
		switch fields {
		case 1:
			format.Fields = []Field{{Name: "x", Fill: "0"}, {Name: "y", Columns: []string{"a"}, Classes: []string{"cat", "dog", "7"}}}
		case 2:
			format.Fields = []Field{{Name: "x", Columns: []string{"b", "a"}}}
		case 3:
			format.Fields = []Field{{Name: "y", Columns: []string{"b"}, DType: "string"}, {Name: "x", Columns: []string{"a"}}}
			format.Missing = []string{pick("?", "7")}
		}
		comma := string(format.Comma)
		var text strings.Builder
		text.WriteString(strings.Join([]string{"a", "b", "c", "d", "e"}[:columns], comma) + "\n")
		rows := r.IntN(12)
		odd := pick("", " 1", "x", "\"5\"", "1e3", "NaN", "\"", "1.5.2", "--1", "?", "\r", "5\n", "1"+comma+"2", "", "-", ".", "123456789012345678")
		oddAt := r.IntN(4*columns*(rows+1) + 1)
		end := pick("\n", "\r\n")
		for i := range rows {
			for c := range columns {
				if c > 0 {
					text.WriteString(comma)
				}
				switch cell := i*columns + c; {
				case cell == oddAt:
					text.WriteString(odd)
				case c == 0 && fields == 1:
					text.WriteString(pick("cat", "dog", "7"))
				default:
					text.WriteString(number())
				}
				cells++
			}
			if i < rows-1 || r.IntN(3) > 0 {
				text.WriteString(end)
			}
		}
		read := func(direct bool) (string, bool, error) {
			f, err := openCSVFile(strings.NewReader(text.String()), format, 1<<16)
			if err != nil {
				return "", false, err
			}
			had := f.direct != nil
			if !direct {
				f.direct = nil
			}
			var all strings.Builder
			for b, err := range f.blocks() {
				require.NoError(t, err)
				part := f.readBlock(b, 1<<10)
				if part.err != nil { // of the row that is wrong there may be some values
					for k, c := range f.columns {
						a := &part.fields[k].Array
						a.Flat = arrays.Of(a.Flat).Slice(a.Flat, 0, (part.err.Row-1)*len(c.at))
					}
				}
				fmt.Fprintln(&all, part.fields, part.n, part.bytes, part.err)
				if part.err != nil {
					return all.String(), had, part.err
				}
			}
			return all.String(), had, nil
		}
		want, _, wantErr := read(false)
		got, had, err := read(true)
		require.Equal(t, want, got, "%q", text.String())
		require.Equal(t, wantErr, err, "%q", text.String())
		if had && err == nil {
			whole++
		} else if had {
			failed++
		}
	}
	require.Greater(t, whole, 500)
	require.Greater(t, failed, 50)
	t.Log(cells, "cells in", whole, "files that are right and", failed, "that are not")
}
