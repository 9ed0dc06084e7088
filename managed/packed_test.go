package managed

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/packs"
)

func TestPacked_elements(t *testing.T) {
	pack := tensors.FromValue([]int64{1, 2, 3})
	require.NoError(t, setElement(pack, 1, tensors.FromScalar(int64(7))))
	element, err := elementOf(pack, 1)
	require.NoError(t, err)
	require.EqualValues(t, 7, element.Value())
	require.Equal(t, []int64{1, 7, 3}, pack.Value())
}

// A step uses the scalars of the parameters that it trains, and all other variables whole.
func TestPacked_names(t *testing.T) {
	d := &definition{store: model.NewStore()}
	scope := d.store.RootScope()
	w, b, pack := scope.VariableWithValue("w", float32(1)), scope.VariableWithValue("b", float32(1)), scope.VariableWithValue("#pack", []int64{0, 0})
	packs.Note(d.store, pack.Path(), []string{"/optimizers/adam/b/count", "/optimizers/adam/w/count"})
	require.Equal(t, []string{"/optimizers/adam/b/count", "/optimizers/adam/w/count"}, d.namesOf(pack))
	require.Equal(t, []string{"/w"}, d.namesOf(w))
	require.Equal(t, []string{"/b", "/optimizers/adam/w/count", "/w"}, d.uses([]*model.Variable{w, b, pack}, []*model.Variable{w}))
}
