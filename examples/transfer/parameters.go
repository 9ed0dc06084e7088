package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/managed"
)

// parameters are those of a state whose full names begin so.
func parameters(state *managed.State, prefix string) map[string]*managed.Tensor {
	found := map[string]*managed.Tensor{}
	for _, name := range state.Names() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		value := must.M1(state.Value(name))
		found[name] = value
	}
	return found
}

// hash tells whether parameters are the same, bit for bit.
func hash(state *managed.State, prefix string) string {
	sum, found := sha256.New(), parameters(state, prefix)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		must.M(found[name].ConstBytes(func(bytes []byte) { sum.Write(bytes) }))
	}
	return fmt.Sprintf("%.8x", sum.Sum(nil))
}
