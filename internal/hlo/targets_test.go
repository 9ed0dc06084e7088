//go:build targets

package hlo_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/xla"
)

// targetPrograms is the number of operations per machine. Groups of targetGroup form one program, which compiles
// faster.
const (
	targetPrograms = 896
	targetGroup    = 32
)

// Each operation, with operands of many dtypes and shapes, compiles for machines that are not present. An operation
// that does not compile has a row in testdata/targets.tsv, with a part of the error; a row without a failure fails the
// test.
func TestTargets_operations(t *testing.T) {
	known, met := knownFailures(t), map[string]bool{}
	for _, target := range []struct{ plugin, topology string }{{xla.TPU, "v5e:2x2"}, {xla.CUDA, "h100:1x1x8"}} {
		t.Run(target.topology, func(t *testing.T) {
			begin := time.Now()
			r, err := xla.OpenTopology(t.Context(), target.plugin, target.topology)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, r.Close()) })
			m := machine{r, target.plugin}
			var failed []failure
			compilations, programs := 0, drawAll(t)
			for group := range slices.Chunk(programs, targetGroup) {
				failed = append(failed, m.failures(group, &compilations)...)
			}
			crashes := 0
			for _, f := range failed {
				if errors.Is(f.err, aot.ErrCrash) {
					crashes++
				}
				key := target.topology + "\t" + f.of.name
				met[key] = true
				if !slices.ContainsFunc(known[key], func(reason string) bool { return strings.Contains(f.err.Error(), reason) }) {
					t.Errorf("%s: %v", key, f.err)
				}
			}
			t.Logf("%s: %d programs of one operation compiled, %d failed, %d of them ended the compiler; %d compilations, %v",
				target.topology, len(programs)-len(failed), len(failed), crashes, compilations, time.Since(begin).Round(time.Second))
		})
	}
	for key := range known {
		require.True(t, met[key], "testdata/targets.tsv has a row %q of no failure", key)
	}
}

// knownFailures returns the rows of testdata/targets.tsv: topology, operation, dtype, a part of the error.
func knownFailures(t *testing.T) map[string][]string {
	file, err := os.Open("testdata/targets.tsv")
	require.NoError(t, err)
	defer file.Close()
	rows := map[string][]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			at := strings.LastIndex(lines.Text(), "\t")
			require.Positive(t, at)
			key := lines.Text()[:at]
			rows[key] = append(rows[key], lines.Text()[at+1:])
		}
	}
	return rows
}

// drawAll draws programs of one operation each, all operations in turn, named after the operation and the dtype of its
// first operand.
func drawAll(t *testing.T) (all []drawn) {
	names, covered := operations(), map[string]map[string]int{"(by)": {}, "(chained)": {}, "(nested)": {}}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "RNGBitGenerator" }) // it has no sample
	for i := range targetPrograms {
		r := &source{Rand: rand.New(rand.NewPCG(11, uint64(i)))}
		p := drawProgram(t, r, i, names[i%len(names):][:1], covered)
		p.name = names[i%len(names)]
		if len(p.inputs) > 0 {
			p.name += " " + p.inputs[0].shape.DType.String()
		}
		all = append(all, p)
	}
	return all
}

// machine compiles for a described machine.
type machine struct {
	*xla.Runtime
	plugin string
}

type failure struct {
	of  drawn
	err error
}

// failures returns the programs of a group that do not compile, found by bisection.
func (m machine) failures(group []drawn, compilations *int) []failure {
	*compilations++
	err := m.compile(group)
	switch {
	case err == nil:
		return nil
	case len(group) == 1:
		return []failure{{group[0], err}}
	}
	half := len(group) / 2
	found := append(m.failures(group[:half], compilations), m.failures(group[half:], compilations)...)
	if len(found) == 0 {
		return []failure{{drawn{name: "together: " + group[0].name}, err}}
	}
	return found
}

func (m machine) compile(group []drawn) error {
	b := programOf(hlo.New("operations", func(of *hlo.Module) (compute.Executable, error) {
		p, err := m.CompileStableHLO(context.Background(), "operations", of.Text(), xla.Built{})
		if err != nil {
			return nil, err
		}
		_, err = p.Memory()
		return &executable{module: of}, errors.Join(err, p.Close())
	}).ForGPU(m.plugin == xla.CUDA).ForTPU(m.plugin == xla.TPU))
	var all []compute.Value
	for i, p := range group {
		var parameters []compute.Value
		for j, in := range p.inputs {
			x, err := b.Parameter(fmt.Sprintf("p%d_%d", i, j), in.shape, nil)
			if err != nil {
				return err
			}
			parameters = append(parameters, x)
		}
		outputs, err := p.build(b.Function, parameters)
		if err != nil {
			return err
		}
		all = append(all, outputs...)
	}
	_, err := b.Finish(all)
	return err
}
