// Package packs keeps several scalars of a model in one variable. Each variable of a model is a buffer that a program
// takes and may return, at a cost that does not depend on its size, so many scalars are better off in one. Outside of a
// step, as in checkpoints, each scalar has a name and a value of its own.
package packs

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/ml/model"
)

// first is the name of the first pack in a scope; the others are first_2, first_3 and so on. As GoMLX's #rngState it is
// a name that no layer has.
const first = "#pack"

// New makes an int64 variable in a scope, of shape [len(names)] and of zeros, which is not trainable. names are the full
// names of its elements; the store keeps them as a parameter with the variable's path.
func New(store *model.Store, scope string, names []string) *model.Variable {
	path := model.JoinPath(scope, first)
	for n := 2; store.GetVariable(path) != nil; n++ {
		path = fmt.Sprintf("%s_%d", model.JoinPath(scope, first), n)
	}
	store.SetParam(path, names)
	store.SetParam(path+apart, false) // as of another pack that was there
	return store.VariableWithValue(path, make([]int64, len(names))).SetTrainable(false)
}

// apart is appended to a pack's path for the store's parameter that says whether its scalars may differ.
const apart = "_apart"

// SetApart notes that the scalars of a pack may differ, from now on.
func SetApart(store *model.Store, v *model.Variable) { store.SetParam(v.Path()+apart, true) }

// Apart reports whether the scalars of a pack may differ; else all are equal.
func Apart(store *model.Store, v *model.Variable) bool {
	may, _ := store.GetParam(v.Path() + apart)
	return may == true
}

// Is reports whether a variable of that path is a pack.
func Is(path string) bool {
	_, name := model.SplitPath(path)
	return name == first || strings.HasPrefix(name, first+"_")
}

// Names are the full names of a variable's elements; nil where the variable is no pack.
func Names(store *model.Store, v *model.Variable) []string {
	if !Is(v.Path()) {
		return nil
	}
	of, _ := store.GetParam(v.Path())
	names, _ := of.([]string)
	return names
}
