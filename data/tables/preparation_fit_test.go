package tables_test

import (
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

func TestFit_ofAMappedSet(t *testing.T) {
	mapped, err := column(t, "kind", "a", "b").MapBatches(data.Drop("id"))
	require.NoError(t, err)
	_, err = tables.Fit(mapped, tables.Categories{Columns: []string{"kind"}})
	require.ErrorContains(t, err, "tables: fit preparation: the set has functions of MapBatches")
}

// A name that the table lacks is an error before anything is fitted: otherwise the remaining columns would include the
// label.
func TestPreparation_aWrongNameIsToldFirst(t *testing.T) {
	table := must.M1(data.New(data.Named("mass", []string{"1", "2"}, 2), data.Named("species", []string{"a", "b"}, 2)))
	for want, of := range map[string][]tables.Columns{
		`tables.Labels: the table has no column "speceis"; there are ["mass" "species"]; did you mean "species"?`: {tables.Numbers{}, tables.Labels{Columns: []string{"speceis"}}},
		`tables.Categories: the table has no column "island"`:                                                     {tables.Numbers{}, tables.Categories{Columns: []string{"island"}}, tables.Labels{Columns: []string{"species"}}},
		`tables.Numbers: the table has no column "age"`:                                                           {tables.Numbers{Columns: []string{"species"}}, tables.Numbers{Columns: []string{"age"}, Field: "z"}},
	} {
		_, err := tables.Fit(table, of...)
		require.ErrorContains(t, err, want)
	}
}

// A cell in Go's own syntax of numbers is not one.
func TestNumbers_areDecimal(t *testing.T) {
	for _, text := range []string{"1_000", "0x1p4", "0X1P-2"} {
		_, err := tables.Fit(column(t, "a", "1", text), tables.Numbers{Columns: []string{"a"}})
		require.ErrorContains(t, err, `row 2: "`+text+`" is not a number`)
		_, err = tables.Read(strings.NewReader("a\n1\n"+text+"\n"), tables.Format{})
		require.ErrorContains(t, err, text)
	}
}
