package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/child"
)

// maxResident is a test's memory limit; a mutant that exceeds it is found.
const maxResident = 4 << 30

type test struct {
	pkg     *source
	binary  string
	name    string
	took    time.Duration
	reaches map[int]bool
	leftOut string
}

type outcome string

const (
	killed     outcome = "killed"
	timedOut   outcome = "timed out"
	notReached outcome = "not reached"
	survived   outcome = "survived"
)

func build(ctx context.Context, module, scratch string, packages []*source, texts map[string][]byte, flags ...string) (map[string]string, error) {
	replaced := map[string]string{}
	for path, text := range texts {
		to := filepath.Join(scratch, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return nil, err
		}
		replaced[path] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	file := overlayIn(scratch)
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for i, p := range packages {
		binary := filepath.Join(scratch, strconv.Itoa(i)+".test")
		args := append([]string{"test", "-c", "-vet=off", "-overlay", file, "-o", binary}, flags...)
		c := exec.CommandContext(ctx, "go", append(args, p.ImportPath)...)
		c.Dir = module
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s: %w\n%s", p.ImportPath, err, out)
		}
		binaries[p.ImportPath] = binary
	}
	return binaries, nil
}

func overlayIn(scratch string) string { return filepath.Join(scratch, "overlay.json") }

// programsToo also changes the programs that a test builds.
func programsToo(ctx context.Context, scratch string) ([]string, error) {
	said, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOCACHE: %w", err)
	}
	return []string{"GOCACHE=" + strings.TrimSpace(string(said)), fmt.Sprintf("GOFLAGS=%s '-overlay=%s'", os.Getenv("GOFLAGS"), overlayIn(scratch))}, nil
}

func run(ctx context.Context, binary, dir, scratch string, limit time.Duration, env []string, args ...string) (passed, inTime bool, output []byte) {
	temp, err := os.MkdirTemp(scratch, "run")
	if err != nil {
		return false, false, []byte(err.Error())
	}
	defer os.RemoveAll(temp)
	var out bytes.Buffer
	c := exec.Command(binary, args...)
	c.Dir, c.Stdout, c.Stderr = dir, &out, &out
	c.WaitDelay = time.Second
	child.Group(c)
	// A mutant must not write into the user's caches.
	c.Env = append(os.Environ(), append([]string{"TMPDIR=" + temp, "XDG_CACHE_HOME=" + temp}, env...)...)
	if err := c.Start(); err != nil {
		return false, false, []byte(err.Error())
	}
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	deadline, look := time.After(limit), time.NewTicker(100*time.Millisecond)
	defer look.Stop()
	inTime = true
	for {
		select {
		case err = <-over:
			_ = child.KillGroup(c)
			return err == nil, inTime, out.Bytes()
		case <-look.C:
			if resident(c.Process.Pid) < maxResident {
				continue
			}
		case <-deadline:
		case <-ctx.Done():
		}
		inTime, deadline = false, nil
		_ = child.KillGroup(c) // it may have ended
	}
}

// resident is 0 without /proc.
func resident(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}

func at(workers, n int, f func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range workers {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// Each test runs alone, without a mutant, for its time and the mutants it reaches; tests that fail or take too long are
// left out.
func (r *runner) reach(ctx context.Context, packages []*source, binaries map[string]string) ([]*test, error) {
	var tests []*test
	for _, p := range packages {
		if binaries[p.ImportPath] == "" {
			continue
		}
		c := exec.CommandContext(ctx, binaries[p.ImportPath], "-test.list", "^(Test|Example)")
		c.Dir = p.Dir
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", p.ImportPath, err)
		}
		for name := range strings.Lines(string(out)) {
			if name = strings.TrimSpace(name); regexp.MustCompile(`^(Test|Example)\w*$`).MatchString(name) {
				tests = append(tests, &test{pkg: p, binary: binaries[p.ImportPath], name: name, reaches: map[int]bool{}})
			}
		}
	}
	errs := make([]error, len(tests))
	at(r.workers, len(tests), func(i int) {
		t := tests[i]
		file := filepath.Join(r.scratch, fmt.Sprintf("reach%d", i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			errs[i] = err
			return
		}
		begin := time.Now()
		passed, inTime, out := run(ctx, t.binary, t.pkg.Dir, r.scratch, r.slowest, []string{reachVariable + "=" + file}, "-test.short", "-test.run", "^"+t.name+"$")
		t.took = time.Since(begin)
		switch {
		case !inTime:
			t.leftOut = fmt.Sprintf("it takes more than %v without a mutant", r.slowest)
		case !passed:
			t.leftOut = "it fails without a mutant: " + lastLine(out)
		}
		var reached []byte
		reached, errs[i] = os.ReadFile(file)
		for line := range strings.Lines(string(reached)) {
			if id, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				t.reaches[id] = true
			}
		}
	})
	slices.SortStableFunc(tests, func(a, b *test) int { return int(a.took - b.took) })
	start := map[string]time.Duration{}
	for _, t := range tests {
		if t.leftOut != "" {
			r.say("%s %s is left out: %s", t.pkg.Name, t.name, t.leftOut)
		}
		if _, has := start[t.binary]; !has {
			start[t.binary] = t.took
		}
		t.took -= start[t.binary] - time.Millisecond
	}
	return tests, errors.Join(append(errs, ctx.Err())...)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)`)

func (r *runner) try(ctx context.Context, m *mutant) {
	m.outcome = notReached
	spent := time.Duration(0)
	for _, batch := range batches(m) {
		if spent > r.budget {
			m.remark = "not all tests were run"
			return
		}
		m.outcome = survived
		expected, names := time.Duration(0), []string(nil)
		for _, t := range batch {
			expected += t.took
			names = append(names, t.name)
		}
		spent += expected
		once := func(names []string) (bool, bool, []byte) {
			return run(ctx, batch[0].binary, batch[0].pkg.Dir, r.scratch, 10*time.Second+4*expected, []string{fmt.Sprintf("%s=%d", onVariable, m.id)},
				"-test.short", "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
		}
		passed, inTime, out := once(names)
		if !inTime {
			m.outcome, m.by = timedOut, names[len(names)-1]
			return
		}
		if passed {
			continue
		}
		named := failure.FindSubmatch(out)
		if named == nil {
			m.outcome, m.by = killed, "the end of the process"
			return
		}
		m.by = string(named[1])
		if passed, _, _ := once([]string{m.by}); !passed { // tests may fail by chance
			m.outcome = killed
			return
		}
		m.remark = "a second run of " + m.by + " passed"
	}
}

// The tests that reach a mutant, by process: its own package's first, then by time.
func batches(m *mutant) (all [][]*test) {
	tests := slices.Clone(m.tests)
	slices.SortStableFunc(tests, func(a, b *test) int {
		switch path := m.pkg.ImportPath; {
		case a.pkg == b.pkg:
			return 0
		case a.pkg.ImportPath == path:
			return -1
		case b.pkg.ImportPath == path:
			return 1
		default:
			return strings.Compare(a.pkg.ImportPath, b.pkg.ImportPath)
		}
	})
	took, limit := time.Duration(0), time.Duration(0)
	for i, t := range tests {
		if i == 0 || tests[i-1].pkg != t.pkg {
			took, limit = 0, 2*time.Second
			all = append(all, nil)
		} else if took += t.took; took > limit {
			took, limit = 0, 4*limit
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], t)
	}
	return all
}

var errSurvived = errors.New("controls survived")
