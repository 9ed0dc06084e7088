package records

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someRows() []Row {
	return []Row{
		{Elapsed: Elapsed{Steps: 1, Samples: 4, Batch: 4, Time: 1500 * time.Millisecond}, Columns: []string{"train.loss"}, Numbers: []float64{0.1}},
		{Elapsed: Elapsed{Steps: 2, Samples: 7, Batch: 3, Time: 2 * time.Second, Epochs: 1, Date: 1e18}, Columns: []string{"test.loss"}, Numbers: []float64{math.Inf(-1)}},
	}
}

func each(rows []Row) func(do func(*Row) error) error {
	return func(do func(*Row) error) error {
		for i := range rows {
			if err := do(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// keeping returns a function that copies rows into a list.
func keeping(to *[]Row) func(*Row) error {
	return func(r *Row) error {
		*to = append(*to, Row{r.Elapsed, slices.Clone(r.Columns), slices.Clone(r.Numbers)})
		return nil
	}
}

func TestCSV(t *testing.T) {
	var s strings.Builder
	require.NoError(t, WriteCSV(&s, each(someRows())))
	require.Equal(t, "elapsed.steps,elapsed.samples,elapsed.batch,elapsed.time,elapsed.date,train.loss,elapsed.epochs,test.loss\n"+
		"1,4,4,1.5,,0.1,0,\n2,7,3,2,2001-09-09T01:46:40Z,,1,-Infinity\n", s.String())
	for _, mark := range []string{"", "\ufeff"} {
		var got []Row
		require.NoError(t, ReadCSV(strings.NewReader(mark+s.String()), keeping(&got)))
		require.Equal(t, someRows(), got)
	}
}

func TestReadCSV_refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "row 1: no line of column names",
		"train.loss\n1\n":                   "row 1: line 1: no column elapsed.steps",
		"elapsed.steps,elapsed.steps\n":     `column "elapsed.steps" comes twice`,
		"elapsed.steps,loss\n":              `column "loss", want collection.name`,
		"elapsed.steps\n1\n\"\"\n":          `row 2: line 3, byte 1: elapsed.steps: want an integer of 64 bits, got ""`,
		"elapsed.steps,train.loss\n1,low\n": `row 1: line 2, byte 3: train.loss: want a number of 64 bits, got "low"`,
		"elapsed.steps,train.loss\n1,2,3\n": "row 1: record on line 2: wrong number of fields",
	} {
		require.ErrorContains(t, ReadCSV(strings.NewReader(text), func(*Row) error { return nil }), want, "%q", text)
	}
}
