package tables

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
)

// rowsByPackage reads the rows of a file with encoding/csv, plus lazo's additions: empty lines of a file of one column,
// and the position of an error.
func rowsByPackage(text string, header bool) (rows [][]string, wrong *data.RowError) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, byteOrderMark)))
	columns, behind := 0, 1
	for {
		cells, err := r.Read()
		row := len(rows) + 1
		if columns == 0 {
			row = 0
		}
		if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
			if columns == 1 {
				row += max(parse.StartLine-behind, 0)
			}
			if err = parse.Err; errors.Is(err, csv.ErrFieldCount) {
				hint := ""
				if columns == 1 {
					hint = ": set Format.Comma if another character than ',' separates the cells"
				}
				err = fmt.Errorf("%d cells, expected %d as in the first row%s", len(cells), columns, hint)
			}
			return nil, &data.RowError{Row: row, Line: parse.StartLine, Err: err}
		}
		if err == io.EOF && columns == 0 {
			return nil, &data.RowError{Line: 1, Err: errors.New("the file is empty")}
		}
		if err == io.EOF {
			return rows, nil
		}
		begins, _ := r.FieldPos(0)
		first := columns == 0
		columns = len(cells)
		if columns == 1 && !(first && header) {
			for ; behind < begins; behind++ {
				rows = append(rows, []string{""})
			}
		}
		behind = begins + 1 + strings.Count(cells[0], "\n")
		if first && header {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
}

// Blocks that are read side by side have the rows and the errors of encoding/csv, wherever they are cut.
func TestCSV_isThatOfEncodingCSV(t *testing.T) {
	pieces := []string{`"`, `""`, `,`, `,`, "\n", "\n", "\r\n", "\r", "\n\n", "a", "1.5", " ", byteOrderMark, `"x,y"`, "\"p\nq\"", "\"\n\n\"", `"say ""so"""`, "é"}
	compared, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		if rapid.Bool().Draw(t, "any") {
			for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces") {
				text.WriteString(p)
			}
		} else {
			columns := rapid.IntRange(1, 3).Draw(t, "columns")
			for range rapid.IntRange(1, 30).Draw(t, "rows") {
				for c := range columns {
					text.WriteString(rapid.SampledFrom([]string{"", "7", " b ", `"x,y"`, "\"p\nq\"", "\"\r\n\"", `"say ""so"""`}).Draw(t, "cell"))
					if c < columns-1 {
						text.WriteByte(',')
					}
				}
				text.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\n\n", "\n\r\n\n"}).Draw(t, "end"))
			}
			text.WriteString(rapid.SampledFrom([]string{"", "", "", `"`, `a"`, ",,,,\n", "\r", `"a"b`}).Draw(t, "tail"))
		}
		header := rapid.Bool().Draw(t, "header")
		block := rapid.IntRange(1, 50).Draw(t, "block")
		want, wrong := rowsByPackage(text.String(), header)
		var got [][]string
		err := eachCSV(strings.NewReader(text.String()), Format{Texts: true, NoHeader: !header}, block, math.MaxInt64, func(b data.Batch) bool {
			require.Equal(t, len(got), b.At)
			for i := range b.Size {
				var row []string
				for _, f := range b.Fields {
					row = append(row, f.Array.Flat.([]string)[i])
				}
				got = append(got, row)
			}
			return true
		})
		where := (*data.RowError)(nil)
		switch {
		case errors.As(err, &where) && where.Row == 0 && header && (wrong == nil || wrong.Row > 0):
			refused++ // two columns of a name, a header of bare CR: the package knows nothing of it
		case wrong != nil:
			require.ErrorAs(t, err, &where)
			require.Equal(t, wrong.Error(), where.Error())
			refused++
		case len(want) == 0:
			require.ErrorContains(t, err, "the file has no examples")
		default:
			require.NoError(t, err)
			require.Equal(t, want, got)
			compared++
		}
	})
	t.Logf("%d files compared, %d refused", compared, refused)
	require.Positive(t, compared)
	require.Positive(t, refused)
}
