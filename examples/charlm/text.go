package main

import (
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
)

func read(folder string) (text []int32, alphabet []rune) {
	folders := []string{folder}
	if folder == "" {
		folder = repository()
		folders = []string{folder, filepath.Join(folder, "docs")}
	}
	var all strings.Builder
	for _, dir := range folders {
		for _, pattern := range []string{"*.md", "*.txt"} {
			for _, path := range must.M1(filepath.Glob(filepath.Join(dir, pattern))) {
				all.Write(must.M1(os.ReadFile(path)))
			}
		}
	}
	characters := []rune(all.String())
	if len(characters) < 20*window { // for a window of the held-out tenth
		must.M(fmt.Errorf("the .md and .txt files of %q have %d characters, expected %d or more: name another folder with -text", folders, len(characters), 20*window))
	}
	alphabet = slices.Clone(characters)
	slices.Sort(alphabet)
	alphabet = slices.Compact(alphabet)
	for _, c := range characters {
		i, _ := slices.BinarySearch(alphabet, c)
		text = append(text, int32(i))
	}
	return text, alphabet
}

// A unigram model's perplexity, with add-one smoothing.
func byFrequencies(counted, on []int32, characters int) float64 {
	counts := make([]float64, characters)
	for _, c := range counted {
		counts[c]++
	}
	var nats float64
	for _, c := range on {
		nats -= math.Log((counts[c] + 1) / float64(len(counted)+characters))
	}
	return math.Exp(nats / float64(len(on)))
}

func repository() string {
	if _, file, _, ok := runtime.Caller(0); ok {
		root := filepath.Join(filepath.Dir(file), "..", "..")
		if _, err := os.Stat(filepath.Join(root, "README.md")); err == nil {
			return root
		}
	}
	return "."
}

func set(windows iter.Seq2[[]int32, error]) *data.Set {
	var runs [][]int32
	for run, err := range windows {
		must.M(err)
		runs = append(runs, run)
	}
	return must.M1(data.New(fields(runs)...))
}

func fields(runs [][]int32) []data.Field {
	var x, y []int32
	for _, run := range runs {
		x, y = append(x, run[:window]...), append(y, run[1:]...)
	}
	return []data.Field{data.X(x, len(runs), window), data.Y(y, len(runs), window)}
}
