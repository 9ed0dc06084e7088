package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type control struct {
	name, file string
	edits      []edit
	pkg, test  string
	tags       string
}

// old occurs once in the file.
type edit struct{ old, new string }

func (c control) texts(module string) (map[string][]byte, error) {
	path, err := filepath.Abs(filepath.Join(module, c.file))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	changed := string(text)
	for _, e := range c.edits {
		if n := strings.Count(changed, e.old); n != 1 {
			return nil, fmt.Errorf("%s: %q appears %d times in %s, expected once: change the control with the code", c.name, e.old, n, c.file)
		}
		changed = strings.Replace(changed, e.old, e.new, 1)
	}
	return map[string][]byte{path: []byte(changed)}, nil
}

// Each control's test must fail.
func (r *runner) controls(ctx context.Context, module string, all []control, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c control) bool { return c.name == name }) {
			return fmt.Errorf("no control is named %q: give a whole name of controls.go", name)
		}
	}
	if r.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	survivors := 0
	for _, c := range all {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		begin := time.Now()
		texts, err := c.texts(module)
		if err != nil {
			return err
		}
		dir := filepath.Join(module, c.pkg) // perhaps in a nested module
		packages, _, err := listed(dir, []string{"."})
		if err != nil {
			return err
		}
		binaries, err := build(ctx, dir, r.scratch, packages, texts, "-tags", c.tags)
		if err != nil {
			return err
		}
		env, err := programsToo(ctx, r.scratch)
		if err != nil {
			return err
		}
		passed, inTime, out := run(ctx, binaries[packages[0].ImportPath], packages[0].Dir, r.scratch, 5*time.Minute, env, "-test.run", "^"+c.test+"$", "-test.v")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !strings.Contains(string(out), c.test) {
			return fmt.Errorf("%s: there is no test %s in %s", c.name, c.test, c.pkg)
		}
		found := "found"
		if passed && inTime {
			found = "NOT FOUND"
			survivors++
		}
		r.say("%-9s %s by %s of %s, after %v", found, c.name, c.test, c.pkg, time.Since(begin).Round(time.Second))
	}
	if survivors > 0 {
		return fmt.Errorf("%w: %d", errSurvived, survivors)
	}
	return nil
}

// controls once passed all tests, or have a test. Those of a package's tests are in controls_PACKAGE.go.
var controls = slices.Concat(
	controlsCallbacks, controlsCheckpoint, controlsCmd, controlsData, controlsDist, controlsFlaxlike,
	controlsInternal, controlsLoop, controlsManaged, controlsMetrics, controlsNn, controlsOptim,
	controlsPretrained, controlsServe, controlsXla, newest,
)

// newest are controls that are not yet in the file of their package.
var newest = []control{
	{name: "labels by the order of a folder's own classes", file: "data/images/images.go", pkg: "data/images", test: "TestOpen_classesOfAnotherFolder",
		edits: []edit{{"imageFile{name, int32(class)}", "imageFile{name, int32(len(f.files))}"}}},
	{name: "a folder of no class", file: "data/images/images.go", pkg: "data/images", test: "TestOpen_classesOfAnotherFolder",
		edits: []edit{{"if class < 0 && len(f.format.Classes) > 0 {", "if false {"}}},
	{name: "values of another series", file: "data/series/past.go", pkg: "data/series", test: "TestPast_fillsForward",
		edits: []edit{{"values[row] = values[g[i-1]]", "values[row] = values[row-1]"}}},
	{name: "a column of windows with an axis too many", file: "data/tables/preparation.go", pkg: "data/tables", test: "TestFit_columnsOfWindowsHaveTwoAxes",
		edits: []edit{{"len(a.Dims) > 2 {", "len(a.Dims) > 3 {"}}},
	{name: "a causal convolution that takes sequences for images", file: "nn/convolution.go", pkg: "flaxlike", test: "TestS36_imagesWithoutChannels",
		edits: []edit{{"d := x.Shape().Dimensions; !sequence && len(d) == 3", "d := x.Shape().Dimensions; len(d) == 3"}}},
	{name: "a maximum of masked places", file: "nn/shape.go", pkg: "nn", test: "TestPools_padding",
		edits: []edit{{"graph.MaskedReduceMax(x, counts, axes...)", "graph.ReduceMax(x, axes...)"}}},
}
