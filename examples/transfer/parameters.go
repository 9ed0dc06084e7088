package main

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/flaxlike"
)

func hash(model *flaxlike.Model, prefix string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(slices.Values(model.Names())) {
		if strings.HasPrefix(name, prefix) {
			must.M(must.M1(model.Value(name)).ConstBytes(func(bytes []byte) { sum.Write(bytes) }))
		}
	}
	return fmt.Sprintf("%.8x", sum.Sum(nil))
}
