package graphs

import (
	"regexp"
	"strings"
)

const kept = "a node of another graph is used, perhaps kept from an earlier call: make all nodes anew in each call of the function"

// hints say what to do where GoMLX's words do not. They are looked for in the words; the mistakes behind them are
// common.
var hints = []struct{ words, hint string }{
	{"already visited from", `two layers have one scope: give each a scope of its own with In("name"), or say that they share its variables: Shared("name") for the second, or At("name") for both`},
	{"not yet visited from", `Shared is for a name that In was given before, in the same build and at the same scope: where the same code runs the first time and later, say At("name")`},
	{"for which no gradient is defined", "the operation has no gradient: leave it out by graph.StopGradient; of Sort and TopK take the places and gather the values: graph.Gather has one"},
	{"requested to reuse variable", `two layers share a scope, or a batch has another width than the first one: give each layer a scope of its own with In("name")`},
	{"combining nodes from different graphs", kept},
	{"already compiled and can't be used for building", kept},
	{"has already returned or been compiled", kept},
	{"is part of a different graph", kept},
	{"has been finalized already", kept},
	{"Convolution requires Filters and KernelSize", "set Channels and KernelSize; the input needs its spatial axes and channels, such as [batch, height, width, channels]"},
}

// types finds a variable that is asked for in another type, but in the shape that it has.
var types = regexp.MustCompile(`previous shape=\((\w+)\)(\[[^\]]*\])?, requested shape=\((\w+)\)(\[[^\]]*\])?`)

func hintFor(words string) string {
	if m := types.FindStringSubmatch(words); m != nil && m[1] != m[3] && m[2] == m[4] {
		return "the variable is there in another type: under a policy of number types, ask for variables in the type of the layer's input or in the builder's DType, or build the part in managed.FullPrecision; without one, give all batches the types of the first, as float32"
	}
	for _, h := range hints {
		if strings.Contains(words, h.words) {
			return h.hint
		}
	}
	return ""
}
