// Package packs stores a model's scalars in one int64 variable of shape [scalars], because a variable's cost in a
// program does not depend on its size. Outside of steps each scalar has its own name and value. The store's parameters
// list a pack's contents.
package packs

import (
	"fmt"
	"path"
	"strings"
)

type Params interface {
	GetParam(path string) (value any, found bool)
	SetParam(path string, value any)
}

// first names a scope's first pack, then first_2 and so on; no layer has such a name. apart marks a pack whose scalars
// may differ.
const first, apart = "#pack", "_apart"

func Path(scope string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s/%s_%d", scope, first, n)
	}
	return scope + "/" + first
}

func Is(variable string) bool {
	name := path.Base(variable)
	return name == first || strings.HasPrefix(name, first+"_")
}

// Note records a new pack's names; the values are equal.
func Note(of Params, pack string, names []string) {
	of.SetParam(pack, names)
	of.SetParam(pack+apart, false) // from an earlier pack
}

// Names returns a pack's names, nil for other variables.
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

func Apart(of Params, pack string) bool {
	may, _ := of.GetParam(pack + apart)
	return may == true
}
