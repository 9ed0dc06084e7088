package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/tables"
)

// Texts that are no UTF-8 are an error, in names and in cells.
func TestS36_latin1(t *testing.T) {
	_, err := tables.Read(strings.NewReader("caf\xe9,b\n1,2\n"), tables.Format{Texts: true})
	require.ErrorContains(t, err, "(line 1): the name of column 1, \"caf\\xe9\": its bytes are not UTF-8: convert the file")
	_, err = tables.Read(strings.NewReader("a,b\nx,y\ncaf\xe9,2\n"), tables.Format{Texts: true})
	require.ErrorContains(t, err, "its bytes are not UTF-8: convert the file")
	require.ErrorContains(t, err, "line 3")
}

// Categories without Columns take neither labels nor ids and dates.
func TestS36_categoriesOfAllColumns(t *testing.T) {
	text := "id,day,kind,label\n"
	for i := range 20 {
		text += fmt.Sprintf("u%d,2026-01-%02d,k%d,l%d\n", i, i+1, i%3, i%2)
	}
	table, err := tables.Read(strings.NewReader(text), tables.Format{Texts: true})
	require.NoError(t, err)
	_, err = tables.Fit(table, tables.Categories{})
	require.ErrorContains(t, err, "Categories without Columns would also take the column of the labels")
	_, err = tables.Fit(table, tables.Labels{Columns: []string{"label"}}, tables.Categories{})
	require.ErrorContains(t, err, `column "id": all its 20 values differ, as those of ids and dates`)
	_, err = tables.Fit(table, tables.Labels{Columns: []string{"label"}}, tables.Categories{Columns: []string{"id", "kind"}})
	require.NoError(t, err)
}
