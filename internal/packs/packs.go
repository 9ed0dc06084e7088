// Package packs stores several scalars of a model in one variable. Each variable is a buffer of a program, at a cost
// that does not depend on its size, so one buffer for all scalars is cheapest. Outside of a step, as in checkpoints,
// each scalar has its own name and value.
//
// A pack is an int64 variable of shape [scalars]. Parameters of the model's store list its contents.
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

// first is the name of the first pack in a scope, followed by first_2 and so on. No layer has such a name, as with
// GoMLX's #rngState. The suffix apart names the parameter for scalars that may differ.
const first, apart = "#pack", "_apart"

// Path returns the path of pack n in a scope, from 1.
func Path(scope string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s/%s_%d", scope, first, n)
	}
	return scope + "/" + first
}

// Is reports whether a variable is a pack, by its path.
func Is(variable string) bool {
	name := path.Base(variable)
	return name == first || strings.HasPrefix(name, first+"_")
}

// Note records the full names of a new pack's scalars, whose values are equal.
func Note(of Params, pack string, names []string) {
	of.SetParam(pack, names)
	of.SetParam(pack+apart, false) // an earlier pack may have set it
}

// Names returns the full names of a pack's scalars, nil for other variables.
func Names(of Params, variable string) []string {
	if !Is(variable) {
		return nil
	}
	noted, _ := of.GetParam(variable)
	names, _ := noted.([]string)
	return names
}

// SetApart records that a pack's scalars may differ.
func SetApart(of Params, pack string) { of.SetParam(pack+apart, true) }

// Apart reports whether a pack's scalars may differ.
func Apart(of Params, pack string) bool {
	may, _ := of.GetParam(pack + apart)
	return may == true
}
