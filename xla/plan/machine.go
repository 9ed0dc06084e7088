package plan

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/xla"
)

//go:embed machines.tsv
var machinesText string

// Machine is a kind of device: what its vendor says of one. A figure that is 0 or missing is not published, and no
// estimate is made of it. The source of each stands in the package's file machines.tsv.
type Machine struct {
	// Kind is its name in a [Target]: "v5e", "h100".
	Kind string
	// Plugin compiles for it: "tpu" or "cuda".
	Plugin string
	// Memory is the device's, in bytes.
	Memory int64
	// Bandwidth is how many bytes a second go from and to memory.
	Bandwidth float64
	// Matrix are floating-point operations a second in products, by the type of the operands ("bf16"); Vector are those
	// of other operations on float32.
	Matrix map[string]float64
	Vector float64
	// Links is how many bytes a second a device sends to others of its host or slice.
	Links float64
	// Host is how many devices a host has, and Network how many bytes a second go to other hosts, for each device.
	Host    int
	Network float64
	// Sources says where each figure is from, by its name in machines.tsv.
	Sources map[string]string
}

// Machines are all kinds that there are figures of.
func Machines() []Machine {
	machines, _ := parseMachines(machinesText) // a test holds that the file can be read
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
			return nil, fmt.Errorf("row %d: %s of %s is %q: expected a number above 0, once", n+1, figure, kind, value)
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
			return nil, fmt.Errorf("row %d: an unknown figure %q", n+1, figure)
		}
	}
	return all, nil
}

// described tells whether the compiler can be told of such a device: libtpu knows its own, of GPUs there is a table.
func (m Machine) described() bool {
	return m.Plugin != "cuda" || slices.Contains(xla.DeviceKinds(), m.Kind)
}

// peak is the rate of products of operands of a type, and the type that it is the rate of.
func (m Machine) peak(dtype string) (rate float64, of string) {
	if strings.HasPrefix(dtype, "f8") {
		dtype = "f8"
	}
	if rate := m.Matrix[dtype]; rate > 0 {
		return rate, dtype
	}
	// A TPU multiplies float32 as bfloat16, unless a program asks for more.
	if dtype == "f32" && m.Plugin == "tpu" {
		return m.Matrix["bf16"], "bf16"
	}
	return 0, dtype
}

// Target is a machine of several devices of a kind.
type Target struct {
	Machine Machine
	// Name is what it was asked for as, "h100:64".
	Name string
	// Grid is how its devices lie: chips along the axes of a slice (TPU), or slices, hosts and the devices of one.
	Grid []int
	// Plugin is the path of the library that compiles, "" for the one that is installed.
	Plugin string
}

// Compiler is the plugin that compiles for it: Plugin, or else that of its machine, for [xla.OpenTopology].
func (t Target) Compiler() string { return cmp.Or(t.Plugin, t.Machine.Plugin) }

// Topology is the target's name for [xla.OpenTopology]: "v5e:4x4", "h100:1x8x8".
func (t Target) Topology() string {
	text := make([]string, len(t.Grid))
	for i, n := range t.Grid {
		text[i] = strconv.Itoa(n)
	}
	return t.Machine.Kind + ":" + strings.Join(text, "x")
}

// Hosts is how many hosts its devices are in, where they are a GPU's; 1 for a slice of TPUs, whose links pass hosts by.
func (t Target) Hosts() int {
	if t.Machine.Plugin == "cuda" && len(t.Grid) == 3 {
		return t.Grid[0] * t.Grid[1]
	}
	return 1
}

// flat are the kinds of TPUs that lie in a plane, of flatMost chips along an axis at most.
var flat = map[string]bool{"v5e": true, "v6e": true}

const flatMost = 16

// maxDevices is far more than any machine has.
const maxDevices = 1 << 20

// ParseTarget reads a kind of device and how many there are: "v5e:4x4" is a slice of TPUs by the grid of its chips,
// "h100:1x8x8" slices, hosts and GPUs of a host, "h100:8" and "h100:64" hosts of eight (of as many as the vendor
// builds), and a number of devices below that one host. Kinds are those of [Machines], of GPUs
// those alone that [xla.DeviceKinds] describes to the compiler.
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
		return Target{}, fmt.Errorf("plan: target %q: expected a kind and its devices, as \"v5e:4x4\" or \"h100:8\"; the kinds are %s", name, strings.Join(kinds, ", "))
	}
	t := Target{Machine: machines[at], Name: name}
	total := 1
	for part := range strings.SplitSeq(grid, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > maxDevices || total > maxDevices/n {
			return Target{}, fmt.Errorf("plan: target %q: %q is no number of devices", name, part)
		}
		total *= n
		t.Grid = append(t.Grid, n)
	}
	switch {
	case len(t.Grid) > 3:
		return Target{}, fmt.Errorf("plan: target %q has %d axes, expected 3 at most", name, len(t.Grid))
	case !t.Machine.described():
		return Target{}, fmt.Errorf("plan: target %q: nothing here describes a %s to the compiler: expected one of %s", name, kind, strings.Join(xla.DeviceKinds(), ", "))
	case t.Machine.Plugin == "cuda" && len(t.Grid) == 1:
		n, host := t.Grid[0], t.Machine.Host
		if n > host && n%host != 0 {
			return Target{}, fmt.Errorf("plan: target %q: %d devices are no whole hosts of %d: say \"%s:1xHOSTSxDEVICES\"", name, n, host, kind)
		}
		t.Grid = []int{1, max(1, n/host), min(n, host)}
	case t.Machine.Plugin == "cuda" && len(t.Grid) != 3:
		return Target{}, fmt.Errorf("plan: target %q: expected %s:DEVICES or %s:SLICESxHOSTSxDEVICES", name, kind, kind)
	case t.Machine.Plugin == "tpu" && flat[kind] && (len(t.Grid) > 2 || slices.Max(t.Grid) > flatMost):
		return Target{}, fmt.Errorf("plan: target %q: the chips of a %s lie in a grid of two axes of at most %d", name, kind, flatMost)
	case t.Machine.Plugin == "tpu" && len(t.Grid) == 1:
		return Target{}, fmt.Errorf("plan: target %q: expected the grid of chips, as \"%s\"", name, kind+":"+gridOf(kind, max(t.Grid[0], 1)))
	}
	return t, nil
}

// Sized is the target with another number of devices: a grid of chips as square as may be, or hosts of GPUs.
func (t Target) Sized(devices int) (Target, error) {
	if devices < 1 || devices > maxDevices {
		return Target{}, fmt.Errorf("plan: %d devices, expected 1 to %d", devices, maxDevices)
	}
	if t.Machine.Plugin == "cuda" {
		return ParseTarget(fmt.Sprintf("%s:%d", t.Machine.Kind, devices))
	}
	return ParseTarget(t.Machine.Kind + ":" + gridOf(t.Machine.Kind, devices))
}

// gridOf is a grid of so many devices for a kind of TPU: two axes, or three where its slices are cubes.
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
	if axes == 3 { // small cubes are written with the single layer last
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
