// Command mutants makes small changes in lazo and checks that a test finds each.
//
//	go run ./internal/mutants [-n 300] [-seed 1] [-with PACKAGE,...] [-only file.go:12,other.go:7] PACKAGE...
//	go run ./internal/mutants -controls [NAME...]
//
// It compiles a seeded sample of mutants together; the process selects one by number. It runs each test once without
// a mutant to find those that it reaches, then with each.
//
// Controls are changes that a named test must find. The files do not change (go build -overlay).
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	r := &runner{out: os.Stdout}
	n := flag.Int("n", 300, "how many mutants")
	seed := flag.Uint64("seed", 1, "of the sample")
	with := flag.String("with", "", "packages whose tests are run too, with commas between: those that hold the tests of others")
	only := flag.String("only", "", "mutants of these FILE:LINE alone, with commas between, all of them")
	flag.IntVar(&r.workers, "workers", 2, "how many processes at once")
	flag.DurationVar(&r.slowest, "slowest", 20*time.Second, "a test that takes longer is left out")
	flag.DurationVar(&r.budget, "budget", 30*time.Second, "time for the tests of a mutant")
	wanted := flag.Bool("controls", false, "run the controls")
	flag.BoolVar(&r.verbose, "v", false, "print what was killed too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *wanted {
		err = r.controls(ctx, ".", controls, flag.Args())
	} else {
		_, err = r.sample(ctx, ".", flag.Args(), strings.FieldsFunc(*with, func(c rune) bool { return c == ',' }), *n, *seed, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type runner struct {
	out             io.Writer
	scratch         string
	workers         int
	verbose         bool
	slowest, budget time.Duration
}

func (r *runner) say(format string, a ...any) { fmt.Fprintf(r.out, format+"\n", a...) }

func (r *runner) sample(ctx context.Context, dir string, patterns, with []string, n int, seed uint64, only string) (tried []*mutant, err error) {
	begin := time.Now()
	if r.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.scratch)
	packages, err := load(dir, patterns)
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, p := range packages {
		all = append(all, find(p)...)
	}
	possible := len(all)
	if only != "" {
		all = slices.DeleteFunc(all, func(m *mutant) bool {
			return !slices.ContainsFunc(strings.Split(only, ","), func(at string) bool {
				return strings.HasSuffix(fmt.Sprintf("%s:%d", m.file, m.line), "/"+at)
			})
		})
		if n = len(all); n == 0 {
			return nil, fmt.Errorf("no mutant is at %s", only)
		}
	}
	order(all, seed)
	tried = chosen(packages, all, n)
	texts := map[string][]byte{}
	for _, p := range packages {
		maps.Copy(texts, written(p, inPackage(p, tried), len(tried)))
	}
	testing := packages
	if len(with) > 0 {
		others, err := load(dir, with)
		if err != nil {
			return nil, err
		}
		testing = append(slices.Clone(packages), others...)
	}
	binaries, err := build(ctx, dir, r.scratch, testing, texts)
	if err != nil {
		return nil, err
	}
	r.say("%d of %d mutants in the tests of %d packages, compiled after %v", len(tried), possible, len(testing), time.Since(begin).Round(time.Second))
	tests, err := r.reach(ctx, testing, binaries)
	if err != nil {
		return nil, err
	}
	r.say("%d tests run without a mutant, after %v", len(tests), time.Since(begin).Round(time.Second))
	var done atomic.Int64
	at(r.workers, len(tried), func(i int) {
		m := tried[i]
		for _, t := range tests {
			switch {
			case t.reaches[m.id] && t.leftOut == "":
				m.tests = append(m.tests, t)
			case t.reaches[m.id]:
				m.missed = append(m.missed, t.name)
			}
		}
		if r.try(ctx, m); r.verbose || m.outcome == survived || m.outcome == notReached {
			r.say("%s", m)
		}
		if d := done.Add(1); d%50 == 0 {
			r.say("… %d after %v", d, time.Since(begin).Round(time.Second))
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.report(dir, packages, tried)
	r.say("%v in all, seed %d", time.Since(begin).Round(time.Second), seed)
	return tried, nil
}

// order shuffles mutants by the seed and their changes: other code does not change a sample.
func order(all []*mutant, seed uint64) {
	rank, twins := map[*mutant]string{}, map[string]int{}
	for _, m := range all {
		key := fmt.Sprint(seed, m.pkg.ImportPath, filepath.Base(m.file), m.function, m.change)
		twins[key]++
		rank[m] = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, key, twins[key])))
	}
	slices.SortFunc(all, func(a, b *mutant) int { return strings.Compare(rank[a], rank[b]) })
}

func inPackage(p *source, mutants []*mutant) (found []*mutant) {
	for _, m := range mutants {
		if m.pkg == p {
			found = append(found, m)
		}
	}
	return found
}

func chosen(packages []*source, all []*mutant, n int) (fit []*mutant) {
	for len(fit) < n && len(all) > 0 {
		more := all[:min(n-len(fit), len(all))]
		all = all[len(more):]
		for i, m := range more {
			m.id = len(fit) + 1 + i
		}
		for _, p := range packages {
			fit = append(fit, compiling(p, inPackage(p, more))...)
		}
	}
	for i, m := range fit {
		m.id = i + 1
	}
	return fit
}

func compiling(p *source, mutants []*mutant) []*mutant {
	if len(mutants) == 0 {
		return nil
	}
	top := slices.MaxFunc(mutants, func(a, b *mutant) int { return a.id - b.id }).id
	if _, err := p.check(written(p, mutants, top), nil); err == nil {
		return mutants
	}
	if len(mutants) == 1 {
		return nil
	}
	half := len(mutants) / 2
	return append(compiling(p, mutants[:half]), compiling(p, mutants[half:])...)
}

func (m *mutant) String() string {
	text := fmt.Sprintf("%-11s %s:%d: %s: %s", m.outcome, filepath.Join(filepath.Base(filepath.Dir(m.file)), filepath.Base(m.file)), m.line, m.kind, m.change)
	if m.by != "" && m.outcome != survived {
		text += ", by " + m.by
	}
	if m.remark != "" {
		text += " (" + m.remark + ")"
	}
	if len(m.missed) > 0 && m.by == "" {
		text += " (" + strings.Join(m.missed, ", ") + " may find it, left out)"
	}
	return text
}

func (r *runner) report(dir string, packages []*source, mutants []*mutant) {
	r.say("\n| package | mutants | killed | timed out | survived | not reached | score |\n|---|---|---|---|---|---|---|")
	row := func(name string, mutants []*mutant) {
		count := map[outcome]int{}
		for _, m := range mutants {
			count[m.outcome]++
		}
		r.say("| %s | %d | %d | %d | %d | %d | %.1f %% |", name, len(mutants), count[killed], count[timedOut], count[survived], count[notReached],
			100*float64(count[killed]+count[timedOut])/float64(max(1, len(mutants))))
	}
	for _, p := range packages {
		row(p.Name, inPackage(p, mutants))
	}
	row("all", mutants)
}
