package tables_test

import (
	"encoding/json"
	"testing"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

// A setting of another kind, as of a newer version, is an error.
func TestPrepared_settingsOfAnotherKind(t *testing.T) {
	for want, column := range map[string]string{
		`column "a": it has a setting that a class label does not support`: `{"column":"a","field":"y","as":"class label","classes":["b"],"indicator":true}`,
		`its As is "text", expected one of ["number" "one-hot"`:            `{"column":"a","field":"x","as":"text"}`,
		`column "" appears twice, or has no name`:                          `{"field":"x","as":"number","scale":1}`,
	} {
		p := new(tables.Preparation)
		require.ErrorContains(t, json.Unmarshal([]byte(`{"version":1,"columns":[`+column+`]}`), p), want)
	}
}
