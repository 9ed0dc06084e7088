// Package packs keeps several scalars of a model in one variable. Each variable of a model is a buffer that a program
// takes and may return. Its cost does not depend on its size, so one buffer for all scalars costs least. Outside of a
// step, as in checkpoints, each scalar has a name and a value of its own.
//
// A pack is an int64 variable of shape [scalars]. Parameters of the model's store say what is in it.
package packs

import (
	"fmt"
	"path"
	"strings"
)

// Params are the parameters of a model's store.
type Params interface {
	GetParam(path string) (value any, found bool)
	SetParam(path string, value any)
}

// first is the name of the first pack in a scope; the others are first_2, first_3 and later ones. As GoMLX's #rngState
// it is a name that no layer has. apart is appended for the parameter that says whether scalars may differ.
const first, apart = "#pack", "_apart"

// Path is the path of pack n in a scope, from 1.
func Path(scope string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s/%s_%d", scope, first, n)
	}
	return scope + "/" + first
}

// Is reports whether a variable of that path is a pack.
func Is(variable string) bool {
	name := path.Base(variable)
	return name == first || strings.HasPrefix(name, first+"_")
}

// Note notes the full names of a new pack's scalars, whose values are equal.
func Note(of Params, pack string, names []string) {
	of.SetParam(pack, names)
	of.SetParam(pack+apart, false) // as of another pack that was there
}

// Names are the full names of a pack's scalars; nil where the variable is none.
func Names(of Params, variable string) []string {
	if !Is(variable) {
		return nil
	}
	noted, _ := of.GetParam(variable)
	names, _ := noted.([]string)
	return names
}

// SetApart notes that the scalars of a pack may differ, from then on.
func SetApart(of Params, pack string) { of.SetParam(pack+apart, true) }

// Apart reports whether the scalars of a pack may differ; else all are equal.
func Apart(of Params, pack string) bool {
	may, _ := of.GetParam(pack + apart)
	return may == true
}
