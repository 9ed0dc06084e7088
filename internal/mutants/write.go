package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// helper is added to each instrumented package. It appends first reaches to a file, also from child processes.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	lazoMutantOn, _  = strconv.Atoi(os.Getenv("` + onVariable + `"))
	lazoMutantReach  = os.Getenv("` + reachVariable + `")
	lazoMutantSeen   [%d]atomic.Bool
)

func lazoMutant(id int) bool {
	if lazoMutantReach != "" {
		lazoMutantReached(id)
	}
	return id == lazoMutantOn
}

//go:noinline
func lazoMutantReached(id int) {
	if lazoMutantSeen[id].Swap(true) {
		return
	}
	if f, err := os.OpenFile(lazoMutantReach, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString(strconv.Itoa(id) + "\n")
		_ = f.Close()
	}
}
`

const (
	onVariable    = "LAZO_MUTANT"
	reachVariable = "LAZO_MUTANT_REACH"
)

func written(s *source, mutants []*mutant, ids int) map[string][]byte {
	texts := map[string][]byte{filepath.Join(s.Dir, "lazo_mutants_generated.go"): fmt.Appendf(nil, helper, s.Name, ids+1)}
	for path, text := range s.texts {
		var here []*mutant
		for _, m := range mutants {
			if m.file == path {
				here = append(here, m)
			}
		}
		texts[path] = render(text, 0, len(text), here)
	}
	return texts
}

func render(text []byte, from, to int, mutants []*mutant) []byte {
	var out bytes.Buffer
	for from < to {
		next := outermost(from, to, mutants)
		if next == nil {
			break
		}
		out.Write(text[from:next.from])
		inner := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return m == next })
		for _, p := range next.form {
			if p.to > p.from {
				out.Write(render(text, p.from, p.to, inner))
			} else {
				out.WriteString(strings.ReplaceAll(p.text, on, fmt.Sprintf("lazoMutant(%d)", next.id)))
			}
		}
		from = next.to
	}
	out.Write(text[from:to])
	return out.Bytes()
}

func outermost(from, to int, mutants []*mutant) (next *mutant) {
	for _, m := range mutants {
		if m.from < from || m.to > to {
			continue
		}
		if next == nil || m.from < next.from || m.from == next.from && m.to > next.to {
			next = m
		}
	}
	return next
}
