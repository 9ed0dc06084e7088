package plan

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/listed"
)

//go:embed machines.tsv
var machinesText string

// Machine has a vendor's figures of a kind of device. 0 or a missing key is unpublished.
type Machine struct {
	// Kind is as in a [Target]: "v5e", "h100".
	Kind string
	// Plugin is "tpu" or "cuda".
	Plugin string
	// Memory is in bytes.
	Memory int64
	// Bandwidth is memory's, in bytes per second.
	Bandwidth float64
	// Matrix has FLOPs per second of matrix products by operand dtype ("bf16"), Vector those of other float32 operations.
	Matrix map[string]float64
	Vector float64
	// Links is a device's bytes per second within its host or slice.
	Links float64
	// Host is the devices per host, Network each one's bytes per second to other hosts.
	Host    int
	Network float64
	Sources map[string]string
}

// Machines returns all known kinds.
func Machines() []Machine {
	machines, _ := parseMachines(machinesText)
	return machines
}

func parseMachines(text string) ([]Machine, error) {
	var all []Machine
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || slices.Contains(fields, "") {
			return nil, fmt.Errorf("row %d: expected kind, figure, value and source", n+1)
		}
		kind, figure, value, source := fields[0], fields[1], fields[2], fields[3]
		if len(all) == 0 || all[len(all)-1].Kind != kind {
			all = append(all, Machine{Kind: kind, Matrix: map[string]float64{}, Sources: map[string]string{}})
		}
		m := &all[len(all)-1]
		if figure == "plugin" {
			m.Plugin = value
			continue
		}
		x, err := strconv.ParseFloat(value, 64)
		if _, twice := m.Sources[figure]; err != nil || !(x > 0) || twice {
			return nil, fmt.Errorf("row %d: %s of %s is %s: expected a number above 0, once", n+1, figure, kind, listed.Quoted(value))
		}
		m.Sources[figure] = source
		switch figure {
		case "memory":
			m.Memory = int64(x)
		case "bandwidth":
			m.Bandwidth = x
		case "vector":
			m.Vector = x
		case "links":
			m.Links = x
		case "network":
			m.Network = x
		case "host":
			m.Host = int(x)
		case "f64", "f32", "f16", "bf16", "f8", "s8":
			m.Matrix[figure] = x
		default:
			return nil, fmt.Errorf("row %d: an unknown figure %s", n+1, listed.Quoted(figure))
		}
	}
	return all, nil
}

func (m Machine) described() bool {
	return m.Plugin != "cuda" || slices.Contains(aot.DeviceKinds(), m.Kind)
}

func (m Machine) peak(dtype string) (rate float64, of string) {
	if strings.HasPrefix(dtype, "f8") {
		dtype = "f8"
	}
	if rate := m.Matrix[dtype]; rate > 0 {
		return rate, dtype
	}
	// A TPU multiplies float32 as bfloat16 by default.
	if dtype == "f32" && m.Plugin == "tpu" {
		return m.Matrix["bf16"], "bf16"
	}
	return 0, dtype
}

// Target is several devices of one kind.
type Target struct {
	Machine Machine
	Name    string
	// Grid is the chips per axis (TPU), or slices, hosts and devices per host (GPU).
	Grid []int
	// Plugin is the path of the compiling library, or "" for the installed one.
	Plugin string
}

// Compiler returns Plugin, or the machine's.
func (t Target) Compiler() string { return cmp.Or(t.Plugin, t.Machine.Plugin) }

// Topology returns [xla.OpenTopology]'s: "v5e:4x4", "h100:1x8x8".
func (t Target) Topology() string {
	text := make([]string, len(t.Grid))
	for i, n := range t.Grid {
		text[i] = strconv.Itoa(n)
	}
	return t.Machine.Kind + ":" + strings.Join(text, "x")
}

// Hosts counts GPU hosts. It is 1 for TPUs, whose links bypass hosts.
func (t Target) Hosts() int {
	if t.Machine.Plugin == "cuda" && len(t.Grid) == 3 {
		return t.Grid[0] * t.Grid[1]
	}
	return 1
}

// flat TPUs have two axes of at most flatMost chips.
var flat = map[string]bool{"v5e": true, "v6e": true}

const flatMost = 16

const maxDevices = 1 << 20

// ParseTarget reads a kind of [Machines] and its devices: a TPU slice's grid of chips, "v5e:4x4"; slices, hosts and
// GPUs per host, "h100:1x8x8"; full hosts of GPUs or part of one, "h100:64". GPUs are "a100" and "h100".
func ParseTarget(name string) (Target, error) {
	kind, grid, found := strings.Cut(name, ":")
	machines := Machines()
	at := slices.IndexFunc(machines, func(m Machine) bool { return m.Kind == kind })
	if at < 0 || !found {
		var kinds []string
		for _, m := range machines {
			if m.described() {
				kinds = append(kinds, m.Kind)
			}
		}
		return Target{}, fmt.Errorf("plan: target %s: expected a kind and its devices, as \"v5e:4x4\" or \"h100:8\"; the kinds are %s", listed.Quoted(name), strings.Join(kinds, ", "))
	}
	t := Target{Machine: machines[at], Name: name}
	total := 1
	for part := range strings.SplitSeq(grid, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > maxDevices || total > maxDevices/n {
			return Target{}, fmt.Errorf("plan: target %s: %s is not a number of devices", listed.Quoted(name), listed.Quoted(part))
		}
		total *= n
		t.Grid = append(t.Grid, n)
	}
	switch {
	case len(t.Grid) > 3:
		return Target{}, fmt.Errorf("plan: target %s has %d axes, expected 3 at most", listed.Quoted(name), len(t.Grid))
	case !t.Machine.described():
		return Target{}, fmt.Errorf("plan: target %s: the kind %s has no description for the compiler: expected one of %s", listed.Quoted(name), kind, strings.Join(aot.DeviceKinds(), ", "))
	case t.Machine.Plugin == "cuda" && len(t.Grid) == 1:
		n, host := t.Grid[0], t.Machine.Host
		if n > host && n%host != 0 {
			return Target{}, fmt.Errorf("plan: target %s: %d devices are not a whole number of hosts of %d: write \"%s:1xHOSTSxDEVICES\"", listed.Quoted(name), n, host, kind)
		}
		t.Grid = []int{1, max(1, n/host), min(n, host)}
	case t.Machine.Plugin == "cuda" && len(t.Grid) != 3:
		return Target{}, fmt.Errorf("plan: target %s: expected %s:DEVICES or %s:SLICESxHOSTSxDEVICES", listed.Quoted(name), kind, kind)
	case t.Machine.Plugin == "tpu" && flat[kind] && (len(t.Grid) > 2 || slices.Max(t.Grid) > flatMost):
		return Target{}, fmt.Errorf("plan: target %s: the chips of a %s lie in a grid of two axes of at most %d", listed.Quoted(name), kind, flatMost)
	case t.Machine.Plugin == "tpu" && len(t.Grid) == 1:
		return Target{}, fmt.Errorf("plan: target %s: expected the grid of chips, as \"%s\"", listed.Quoted(name), kind+":"+gridOf(kind, max(t.Grid[0], 1)))
	}
	return t, nil
}

// Sized returns a target with another number of devices, as square as possible for TPUs.
func (t Target) Sized(devices int) (Target, error) {
	if devices < 1 || devices > maxDevices {
		return Target{}, fmt.Errorf("plan: %d devices, expected 1 to %d", devices, maxDevices)
	}
	if t.Machine.Plugin == "cuda" {
		return ParseTarget(fmt.Sprintf("%s:%d", t.Machine.Kind, devices))
	}
	return ParseTarget(t.Machine.Kind + ":" + gridOf(t.Machine.Kind, devices))
}

func gridOf(kind string, devices int) string {
	chips, axes := devices, 2
	switch kind {
	case "v4", "v5p":
		axes = 3
	case "tpu7x":
		axes, chips = 3, max(1, devices/2)
	}
	dims := make([]int, axes)
	for i := range dims {
		dims[i] = 1
	}
	for rest := chips; rest > 1; {
		factor := 2
		for rest%factor != 0 {
			factor++
		}
		dims[slices.Index(dims, slices.Min(dims))] *= factor
		rest /= factor
	}
	slices.Sort(dims)
	if axes == 3 { // small cubes: the single layer last
		slices.SortStableFunc(dims, func(a, b int) int {
			if a == 1 || b == 1 {
				return b - a
			}
			return a - b
		})
	}
	text := make([]string, axes)
	for i, d := range dims {
		text[i] = strconv.Itoa(d)
	}
	return strings.Join(text, "x")
}
