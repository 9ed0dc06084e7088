package graphs

import "strings"

// hints say what to do where GoMLX's words do not. They are looked for in the words; the mistakes behind them are common.
var hints = []struct{ words, hint string }{
	{"requested to reuse variable", `two layers share a scope, or a batch has another width than the first one: give each layer a scope of its own with In("name")`},
	{"already been compiled, one cannot further build", "a node of another graph is used, perhaps kept from an earlier call: make all nodes anew in each call of the function"},
	{"Convolution requires Filters and KernelSize", "set Channels and KernelSize; the input needs its spatial axes and channels, such as [batch, height, width, channels]"},
}

func hintFor(words string) string {
	for _, h := range hints {
		if strings.Contains(words, h.words) {
			return h.hint
		}
	}
	return ""
}
